#include "runtime/slurm/batch_script.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using Processes = std::map<pid_t, Process>;

std::string ScriptOf(pid_t pid, const Processes& processes) {
  return cairn::ScriptOf(pid, [&](pid_t p) {
    const auto found = processes.find(p);
    return found == processes.end() ? std::nullopt : std::optional<Process>(found->second);
  });
}

const Process kDaemon = {"slurmstepd", "", 1};

TEST(ScriptOf, IsTheProgramOfTheAncestorThatSlurmsDaemonHasStarted) {
  const Processes processes = {{2, kDaemon},
                               {3, {"slurm_script", "bash", 2}},
                               {4, {"time", "time", 3}},
                               {5, {"srun", "srun", 4}},
                               {6, {"cairn", "cairn", 5}}};
  EXPECT_EQ(ScriptOf(6, processes), "bash");
}

TEST(ScriptOf, IsSrunWhereTheScriptHasBecomeIt) {
  EXPECT_EQ(ScriptOf(6, {{2, kDaemon}, {5, {"srun", "srun", 2}}, {6, {"cairn", "cairn", 5}}}), "srun");
}

TEST(ScriptOf, IsNothingOutsideABatchJobOrWhereAnAncestorCannotBeSeen) {
  const Process srun = {"srun", "srun", 3}, cairn = {"cairn", "cairn", 5};
  EXPECT_EQ(ScriptOf(6, {{1, {"systemd", "", 0}}, {3, {"bash", "bash", 1}}, {5, srun}, {6, cairn}}), "");
  EXPECT_EQ(ScriptOf(6, {{2, kDaemon}, {5, srun}, {6, cairn}}), "");
}

// A process that calls itself as Slurm's daemon does, and a shell's script below it.
TEST(BelowShellScript, KnowsAScriptByItsInterpreter) {
  const TempDir dir;
  std::ofstream(dir.path() + "/script") << "#!/bin/sh\nsleep 60; true\n";
  std::filesystem::permissions(dir.path() + "/script", std::filesystem::perms::owner_all);
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    prctl(PR_SET_NAME, "slurmstepd");
    const pid_t script = fork();
    if (script == 0) {
      const std::string path = dir.path() + "/script";
      execl(path.c_str(), path.c_str(), nullptr);
      _exit(127);
    }
    (void)!write(out[1], &script, sizeof script);
    pause();
    _exit(0);
  }
  pid_t script = 0;
  ASSERT_EQ(read(out[0], &script, sizeof script), static_cast<ssize_t>(sizeof script));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!BelowShellScript(script) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(BelowShellScript(script));
  EXPECT_FALSE(BelowShellScript(daemon));
  kill(script, SIGKILL);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  close(out[0]);
  close(out[1]);
}

TEST(BelowShellScript, SaysNoWhereThereIsNoSlurm) { EXPECT_FALSE(BelowShellScript(getpid())); }

}  // namespace
}  // namespace cairn
