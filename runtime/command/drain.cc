#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/subcommands.h"
#include "runtime/session/left_drain.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct Asked {
  std::string job, node, within;
  std::string local = "/dev/shm";
};

Result<int> Drain(const Asked& asked, bool json) {
  LeftDrainOptions options;
  options.tier = {.setting = asked.local, .job = asked.job, .node = asked.node};
  CAIRN_ASSIGN_OR_RETURN(options.within, ParseDuration(asked.within));
  options.say = [](const std::string&) {};  // the first error is told anyhow
  CAIRN_ASSIGN_OR_RETURN(const std::vector<LeftDrained> drained, DrainLeft(options));
  if (json) {
    Json list = Json::array();
    for (const LeftDrained& d : drained)
      list.push_back({{"dir", d.dir}, {"step", d.step}, {"checkpoint", d.checkpoint}, {"bytes", d.bytes}});
    PrintJson({{"drained", std::move(list)}});
  } else if (drained.empty()) {
    std::printf("nothing to make durable: job %s left no images on %s that are newer than its checkpoints\n",
                asked.job.c_str(), asked.node.c_str());
  }
  for (const LeftDrained& d : drained) {
    if (!json)
      std::printf("step %lld of %s is durable: %s (%s from this node)\n", static_cast<long long>(d.step),
                  d.dir.c_str(), d.checkpoint.c_str(), FormatBytes(d.bytes).c_str());
  }
  return kExitGood;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void AddDrain(CLI::App* app, Invocation* invocation) {
  auto asked = std::make_shared<Asked>();
  asked->job = Variable("SLURM_JOB_ID");
  asked->node = Variable("SLURMD_NODENAME");
  asked->within = "10m";
  Subcommand drain = AddSubcommand(
      app, invocation, "drain",
      "Make durable what a step that was killed left complete in the memory of its nodes and never wrote to\n"
      "its directory. It is run on each of the nodes at about the same time; who is last makes the "
      "checkpoint.\n"
      "An epilog runs it where the administrator has set epilog_drain (cairn-plugstack(5)); the next step "
      "of\n"
      "the same job does the same by itself. The images stay where they are. Directories alone, no buckets.",
      "srun --ntasks-per-node=1 cairn drain --job 4711", [=] { return Drain(*asked, invocation->json); });
  drain.Option("--job", "JOB", &asked->job, "the job whose step was killed [SLURM_JOB_ID]");
  drain.Option("--node", "NODE", &asked->node, "this node, as Slurm calls it [SLURMD_NODENAME]");
  drain.Option("--local", "DIR", &asked->local, "the local tier [/dev/shm]");
  drain.Option("--within", "TIME", &asked->within, "give up when it takes longer [10m]");
}

}  // namespace cairn
