// RunDonor, with sallocs that are shell scripts.
#include "runtime/command/donor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

TEST(RunDonor, TellsWhyItWasGivenNothing) {
  const Status status = RunDonor({"sh", "-c", "echo 'salloc: error: too late' >&2; echo more >&2; exit 1"});
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "sh failed with exit status 1: salloc: error: too late");
  EXPECT_TRUE(RunDonor({"true"}).ok());
  EXPECT_FALSE(RunDonor({"no-such-salloc"}).ok());
}

TEST(RunDonor, HasNoJobsNumber) {
  setenv("SLURM_JOB_ID", "7", 1);
  const Status status = RunDonor({"sh", "-c", "echo job$SLURM_JOB_ID; exit 1"});
  unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(status.message(), "sh failed with exit status 1: job");
}

TEST(RunDonor, IsToldToEndWhenItsOwnerIsKilled) {
  const TempDir here;
  const std::string waits = here / "waits", told = here / "told";
  const pid_t owner = fork();
  if (owner == 0) {
    (void)RunDonor(
        {"sh", "-c",
         "trap 'echo >" + told + "; exit' TERM; echo >" + waits + "; while :; do sleep 0.02; done"});
    _exit(0);
  }
  while (!std::filesystem::exists(waits)) std::this_thread::yield();
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  while (!std::filesystem::exists(told)) std::this_thread::yield();
}

}  // namespace
}  // namespace cairn
