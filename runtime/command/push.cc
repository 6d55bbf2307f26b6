#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

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

struct PushOptions {
  std::string target, place, keep, every;
  bool all = false, gently = false;
};

// Asked to stop by the first SIGINT, SIGTERM or SIGHUP; the second one ends the process. To be called before there are threads.
std::stop_token StoppedBySignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signo : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signo, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals, signo);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::stop_source source;
  std::thread([source, signals]() mutable {
    int signo = 0;
    sigwait(&signals, &signo);
    (void)source.request_stop();
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    for (;;) pause();
  }).detach();
  return source.get_token();
}

// Behind everything else that wants a CPU or the disk; also the threads that are yet to come.
void GoLast() {
  constexpr int kIoOfProcess = 1, kIoIdle = 3 << 13;  // linux/ioprio.h, which not every system has
  setpriority(PRIO_PROCESS, 0, 19);
  syscall(SYS_ioprio_set, kIoOfProcess, 0, kIoIdle);
}

// The one that was named; else the place of the run's --checkpoint-copy.
Result<std::string> ChoosePlace(const Chosen& chosen, const std::string& named) {
  if (!named.empty()) return AbsolutePath(named);
  constexpr const char* kVariable = "CAIRN_COPY";
  for (const Checkpoint& newest : chosen.listing.checkpoints) {
    if (!newest.readable.ok()) continue;
    const auto told = newest.manifest.settings.find(kVariable);
    if (told == newest.manifest.settings.end()) break;
    CAIRN_ASSIGN_OR_RETURN(const CopyRule copy, ParseCopy(kVariable, told->second));
    return copy.to;
  }
  return Status(
      Code::kInvalid,
      chosen.dir.path() + " was not saved with --checkpoint-copy: name DEST, the place to copy it to");
}

Result<int> Push(const PushOptions& given, bool json) {
  const std::stop_token stop = StoppedBySignals();
  if (given.gently) GoLast();
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(given.target));
  CAIRN_ASSIGN_OR_RETURN(const std::string to, ChoosePlace(chosen, given.place));
  Nanoseconds every(0);
  if (!given.every.empty()) {
    CAIRN_ASSIGN_OR_RETURN(every, ParseDuration(given.every));
  }
  CAIRN_ASSIGN_OR_RETURN(const Settings settings, ParseSettings(Variable));
  std::vector<std::string> names;
  for (const Checkpoint& c : Candidates(chosen.listing)) {
    if (given.all || c.name == chosen.checkpoint.name) names.push_back(c.name);
  }
  if (names.empty()) names.push_back(chosen.checkpoint.name);  // an orphan, or one that is marked as damaged

  std::optional<ProgressBar> bar;
  Json copied = Json::array(), passed_over = Json::array();
  size_t there = 0;
  bool damaged = false;
  MirrorOptions options;
  options.stop = stop;
  if (!given.keep.empty()) {
    CAIRN_ASSIGN_OR_RETURN(options.keep, ParseKeep("--keep", given.keep));
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
  CAIRN_ASSIGN_OR_RETURN(const Nanoseconds early, mirror.TooEarly(chosen.checkpoint, every));
  const Status status = early.count() > 0 ? OkStatus() : mirror.Copy(names);
  bar.reset();
  if (!status.ok()) std::fprintf(stderr, "cairn: %s\n", status.message().c_str());
  if (json) {
    Json document = {
        {"dir", chosen.dir.path()}, {"to", to}, {"checkpoints", copied}, {"passed_over", passed_over}};
    if (early.count() > 0) document["too_early_ns"] = early.count();
    if (!status.ok()) document["error"] = {{"code", CodeName(status.code())}, {"message", status.message()}};
    PrintJson(document);
  } else if (early.count() > 0) {
    std::printf("step %lld is not copied: it was saved less than %s after the newest copy in %s\n",
                static_cast<long long>(chosen.checkpoint.id.step), given.every.c_str(), to.c_str());
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
  auto options = std::make_shared<PushOptions>();
  Subcommand push = AddSubcommand(
      app, invocation, "push",
      "Copy a checkpoint to a second place, a directory or s3://BUCKET/PREFIX, unless it is "
      "there. Each block\n"
      "is compared with its checksum on the way. What is made there is a complete run: all "
      "commands work on it,\n"
      "and a job goes on from it with --checkpoint-dir=DEST. Also while a job of the run goes "
      "on, and as often\n"
      "as you like. Nothing is removed there without --keep. CAIRN_DRAIN_LIMIT limits how fast it reads.",
      "cairn push /scratch/me/run7 s3://lab-archive/me/run7",
      [=] { return Push(*options, invocation->json); });
  push.Positional("DIR[@STEP|@TAG]", &options->target, "which checkpoint; without @ the newest");
  push.Positional("DEST", &options->place, "the place; without one that of the run's --checkpoint-copy")
      .Optional();
  push.Option("--keep", "POLICY", &options->keep,
              "remove what these rules do not keep there, as --checkpoint-keep");
  push.Option("--every", "TIME", &options->every,
              "nothing unless it was saved so long after the newest copy");
  push.Flag("--all", &options->all, "all checkpoints of the run that a restart could take");
  push.Flag("--gently", &options->gently, "at the lowest priority of CPU and disk");
}

}  // namespace cairn
