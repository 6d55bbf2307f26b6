#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/target.h"
#include "runtime/command/ask.h"
#include "runtime/command/known_runs.h"
#include "runtime/command/subcommands.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct SaveArgs {
  std::string name;
  std::string tag;
  std::string timeout = "10m";
};

Result<int> Save(const SaveArgs& args, bool json) {
  const Result<Nanoseconds> timeout = ParseDuration(args.timeout);
  if (!timeout.ok()) return timeout.status().Annotate("--timeout");
  if (!args.tag.empty()) CAIRN_RETURN_IF_ERROR(CheckTag(args.tag));
  CAIRN_ASSIGN_OR_RETURN(const FoundRun found, FindRun(args.name));
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(found.dir));
  Json request = {{"op", "save"}};
  if (!args.tag.empty()) request["tag"] = args.tag;
  CAIRN_ASSIGN_OR_RETURN(Json reply, Ask(dir.path(), request, *timeout));
  if (!reply.value("saved", false)) {
    return Status(Code::kUnavailable, "the job did not save: " + reply.value("why", "it gave no reason") +
                                          "; the older checkpoints are as they were");
  }
  const std::string checkpoint = reply.value("checkpoint", "");
  if (json) {
    reply["dir"] = dir.path();
    if (!args.tag.empty()) reply["tag"] = args.tag;
    PrintJson(reply);
  } else {
    std::printf("saved  %s, step %s, is durable in %s%s\n", checkpoint.c_str(),
                reply.value("step", Json()).dump().c_str(), dir.path().c_str(),
                args.tag.empty() ? "" : (", tagged " + args.tag).c_str());
  }
  return kExitGood;
}

}  // namespace

void AddSave(CLI::App* app, Invocation* invocation) {
  auto args = std::make_shared<SaveArgs>();
  Subcommand save = AddSubcommand(
      app, invocation, "save",
      "Make a running job save at its next boundary, and wait until the checkpoint is durable. The job goes\n"
      "on. Exits 1, with the reason, when it did not save.",
      "cairn save 4711 --tag before-lr-change", [=] { return Save(*args, invocation->json); });
  save.Positional("JOB|DIR", &args->name, "a job, JOB.STEP, or the run's directory");
  save.Option("--tag", "NAME", &args->tag, "name the checkpoint; it is then never pruned");
  save.Option("--timeout", "DURATION", &args->timeout, "how long to wait").ShowDefault();
}

}  // namespace cairn
