#include "runtime/slurm/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cerrno>
#include <future>
#include <thread>

namespace cairn {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Result<std::string> RunAndWait(std::vector<std::string> argv, milliseconds bound) {
  auto loop = std::move(*Loop::Start("test"));
  std::unique_ptr<CommandRunner> runner;
  std::promise<Result<std::string>> answer;
  loop->Run([&] {
    runner = std::make_unique<CommandRunner>(loop.get());
    runner->Run(std::move(argv), bound, [&](Result<std::string> r) { answer.set_value(std::move(r)); });
  });
  auto result = answer.get_future().get();
  loop->Run([&] { runner.reset(); });
  return result;
}

TEST(CommandRunner, GivesTheOutput) {
  const auto r = RunAndWait({"sh", "-c", "echo one; echo noise >&2; echo two"}, milliseconds(20000));
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_EQ(*r, "one\ntwo\n");
}

TEST(CommandRunner, TakesLargeOutput) {
  const auto r = RunAndWait({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"}, milliseconds(20000));
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->size(), 1000000u);
}

TEST(CommandRunner, ReportsAFailureWithItsFirstLine) {
  const auto r = RunAndWait(
      {"sh", "-c", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; echo more >&2; exit 3"},
      milliseconds(20000));
  EXPECT_EQ(r.status().code(), Code::kUnavailable);
  EXPECT_EQ(r.status().message(),
            "sh -c failed with exit status 3: slurm_load_jobs error: Invalid job id specified");
}

TEST(CommandRunner, ReportsAProgramThatIsNotThere) {
  const auto r = RunAndWait({"no-such-program"}, milliseconds(20000));
  EXPECT_EQ(r.status().code(), Code::kNotFound);
}

TEST(CommandRunner, KillsWhatDoesNotAnswerInTime) {
  const auto r = RunAndWait({"sleep", "1000"}, milliseconds(50));
  EXPECT_EQ(r.status().code(), Code::kTimeout);
}

TEST(CommandRunner, ReapsWhatItHasKilled) {
  while (waitpid(-1, nullptr, 0) > 0) {  // what the runners of other tests have left as zombies
  }
  auto loop = std::move(*Loop::Start("test"));
  std::unique_ptr<CommandRunner> runner;
  loop->Run([&] {
    runner = std::make_unique<CommandRunner>(loop.get());
    runner->Run({"sleep", "1000"}, milliseconds(50), [](const Result<std::string>&) {});
  });
  while (waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) == 0)
    std::this_thread::yield();  // until no child is left
  EXPECT_EQ(errno, ECHILD);
  loop->Run([&] { runner.reset(); });
}

TEST(CommandRunner, LetsACommandIgnoreSigtermAsItsCallerDoes) {
  const auto before = signal(SIGTERM, SIG_IGN);
  const auto r = RunAndWait({"sh", "-c", "kill -TERM $$; echo alive"}, milliseconds(20000));
  signal(SIGTERM, before);
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_EQ(*r, "alive\n");
}

TEST(CommandRunner, GivesACleanEnvironment) {
  setenv("SLURM_TIME_FORMAT", "relative", 1);
  setenv("SLURM_CAIRN_TOKEN", "secret", 1);
  setenv("SLURM_JOB_ID", "7", 1);
  setenv("TZ", "America/New_York", 1);
  const auto r =
      RunAndWait({"sh", "-c", "echo $SLURM_TIME_FORMAT,$SLURM_CAIRN_TOKEN,$SLURM_JOB_ID,$TZ,$LC_ALL"},
                 milliseconds(20000));
  unsetenv("SLURM_TIME_FORMAT");
  unsetenv("SLURM_CAIRN_TOKEN");
  unsetenv("SLURM_JOB_ID");
  unsetenv("TZ");
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(*r, ",,,UTC,C\n");
}

TEST(CommandRunner, ForgetsWhatStillRunsWhenItIsDestroyed) {
  auto loop = std::move(*Loop::Start("test"));
  bool called = false;
  loop->Run([&] {
    CommandRunner runner(loop.get());
    runner.Run({"sleep", "1000"}, milliseconds(100000), [&](const Result<std::string>&) { called = true; });
  });
  loop.reset();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace cairn
