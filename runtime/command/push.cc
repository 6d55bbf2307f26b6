#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/target.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/mirror/mirror.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

Result<int> Push(const std::string& target, const std::string& place, const std::string& keep, bool all,
                 bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(target));
  CAIRN_ASSIGN_OR_RETURN(const std::string to, AbsolutePath(place));
  CAIRN_ASSIGN_OR_RETURN(const Settings settings, ParseSettings(Variable));
  std::vector<std::string> names;
  for (const Checkpoint& c : Candidates(chosen.listing)) {
    if (all || c.name == chosen.checkpoint.name) names.push_back(c.name);
  }
  if (names.empty()) names.push_back(chosen.checkpoint.name);  // an orphan, or one that is marked as damaged

  std::optional<ProgressBar> bar;
  Json copied = Json::array(), passed_over = Json::array();
  size_t there = 0;
  bool damaged = false;
  MirrorOptions options;
  if (!keep.empty()) {
    CAIRN_ASSIGN_OR_RETURN(options.keep, ParseKeep("--keep", keep));
  }
  options.mode = settings.mode;
  options.bytes_per_second = settings.drain_limit;
  options.self.job = Variable("SLURM_JOB_ID").value_or("");
  options.self.step = Variable("SLURM_STEP_ID").value_or("");
  options.self.cluster = Variable("SLURM_CLUSTER_NAME").value_or("");
  const std::string restart = Variable("SLURM_RESTART_COUNT").value_or("0");
  (void)std::from_chars(restart.data(), restart.data() + restart.size(), options.self.restart);
  options.say = [&bar](const std::string& line) {
    bar.reset();
    std::fprintf(stderr, "cairn: %s\n", line.c_str());
  };
  options.under_way = [&bar](const Checkpoint&, uint64_t done, uint64_t total) {
    if (!bar) bar.emplace();
    bar->Draw(done, total);
  };
  options.copied = [&](const Copied& one) {
    bar.reset();
    ++there;
    if (json) {
      copied.push_back({{"checkpoint", one.from},
                        {"step", one.step},
                        {"copy", one.name},
                        {"bytes", one.bytes},
                        {"was_there", one.was_there},
                        {"copy_ns", one.was_there ? Json(nullptr) : Json(one.took.count())}});
    } else if (one.was_there) {
      std::printf("step %lld is there already\n", static_cast<long long>(one.step));
    } else {
      std::printf("%s\n", Describe(one, to).c_str());
    }
    std::fflush(stdout);
  };
  options.passed_over = [&](const std::string& name, const Status& why) {
    bar.reset();
    damaged = damaged || why.code() == Code::kDamage;
    std::fprintf(stderr, "cairn: not copied: %s\n", why.message().c_str());
    passed_over.push_back({{"checkpoint", name}, {"code", CodeName(why.code())}, {"message", why.message()}});
  };
  Mirror mirror(chosen.dir.path(), to, options);
  const Status status = mirror.Copy(names);
  bar.reset();
  if (!status.ok()) std::fprintf(stderr, "cairn: %s\n", status.message().c_str());
  if (json) {
    Json document = {
        {"dir", chosen.dir.path()}, {"to", to}, {"checkpoints", copied}, {"passed_over", passed_over}};
    if (!status.ok()) document["error"] = {{"code", CodeName(status.code())}, {"message", status.message()}};
    PrintJson(document);
  } else if (there > 0 || status.ok()) {
    std::printf("%s of %s in %s\n", Count(there, "checkpoint").c_str(), chosen.dir.path().c_str(),
                to.c_str());
  }
  if (status.code() == Code::kInvalid) return kExitUsage;
  // What was pruned while all were copied is not missed.
  if (!status.ok() || damaged || (there == 0 && !passed_over.empty())) return kExitBad;
  return kExitGood;
}

}  // namespace

void AddPush(CLI::App* app, Invocation* invocation) {
  auto target = std::make_shared<std::string>();
  auto place = std::make_shared<std::string>();
  auto keep = std::make_shared<std::string>();
  auto all = std::make_shared<bool>(false);
  CLI::App* push = AddSubcommand(
      app, invocation, "push",
      "Copy a checkpoint to a second place, a directory or s3://BUCKET/PREFIX, unless it is "
      "there. Each block\n"
      "is compared with its checksum on the way. What is made there is a complete run: all "
      "commands work on it,\n"
      "and a job goes on from it with --checkpoint-dir=DEST. Also while a job of the run goes "
      "on, and as often\n"
      "as you like. Nothing is removed there without --keep. CAIRN_DRAIN_LIMIT limits how fast it reads.",
      "cairn push /scratch/me/run7 s3://lab-archive/me/run7",
      [=] { return Push(*target, *place, *keep, *all, invocation->json); });
  push->add_option("DIR[@STEP|@TAG]", *target, "which checkpoint; without @ the newest")
      ->required()
      ->type_name("");
  push->add_option("DEST", *place, "the place")->required()->type_name("");
  push->add_option("--keep", *keep, "remove what these rules do not keep there, as --checkpoint-keep")
      ->type_name("POLICY");
  push->add_flag("--all", *all, "all checkpoints of the run that a restart could take");
}

}  // namespace cairn
