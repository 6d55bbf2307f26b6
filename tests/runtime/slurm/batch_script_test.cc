#include "runtime/slurm/batch_script.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace cairn {
namespace {

using Processes = std::map<pid_t, Process>;

std::string ScriptOf(pid_t pid, const Processes& processes) {
  return cairn::ScriptOf(pid, [&](pid_t p) {
    const auto found = processes.find(p);
    return found == processes.end() ? std::nullopt : std::optional<Process>(found->second);
  });
}

TEST(ScriptOf, IsTheAncestorThatSlurmsDaemonHasStarted) {
  const Processes processes = {{1, {"systemd", 0}}, {2, {"slurmstepd", 1}}, {3, {"bash", 2}},
                               {4, {"time", 3}},    {5, {"srun", 4}},       {6, {"cairn", 5}}};
  EXPECT_EQ(ScriptOf(6, processes), "bash");
}

TEST(ScriptOf, IsSrunWhereTheScriptHasBecomeIt) {
  const Processes processes = {
      {1, {"systemd", 0}}, {2, {"slurmstepd", 1}}, {5, {"srun", 2}}, {6, {"cairn", 5}}};
  EXPECT_EQ(ScriptOf(6, processes), "srun");
}

TEST(ScriptOf, IsNothingOutsideABatchJobOrWhereAnAncestorCannotBeSeen) {
  EXPECT_EQ(ScriptOf(6, {{1, {"systemd", 0}}, {3, {"bash", 1}}, {5, {"srun", 3}}, {6, {"cairn", 5}}}), "");
  EXPECT_EQ(ScriptOf(6, {{2, {"slurmstepd", 1}}, {5, {"srun", 3}}, {6, {"cairn", 5}}}), "");
}

TEST(BelowShellScript, SaysNoWhereThereIsNoSlurm) { EXPECT_FALSE(BelowShellScript(getpid())); }

}  // namespace
}  // namespace cairn
