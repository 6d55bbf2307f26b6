// Restores of real processes that share the reading. Bytes read are those that the kernel counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kReplica = 3 << 20;  // elements; 24 MiB

std::vector<std::string> Args(int64_t replica) {
  return {"--n", "10007", "--steps", "6", "--step-us", "2000", "--replica", std::to_string(replica)};
}

// Saves with `ranks` ranks after step 3, and goes on to the end without finishing the run; the expected hash of the replicas.
std::string SaveInTheMiddle(const std::string& dir, int ranks, int64_t replica) {
  std::vector<std::string> args = Args(replica);
  for (const char* more : {"--save-at", "3", "--wait-at", "3", "--no-finalize"}) args.emplace_back(more);
  Step step({.ranks = ranks, .dir = dir, .args = args, .env = {{"CAIRN_ON", "request"}}});
  EXPECT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.Log(), HasSubstr("saved step"));
  return step.rank(0).Line("replica");
}

TEST(Exchange, ReplicasReadTheirBytesOnceInSum) {
  TempDir tmp;
  const std::string dir = tmp.path() + "/run";
  const std::string expected = SaveInTheMiddle(dir, 4, kReplica);
  Step resumed({.ranks = 3, .dir = dir, .args = Args(kReplica), .restart = 1});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  int64_t sum = 0;
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(resumed.rank(r).Line("restore"), "0 ") << resumed.Log();
    EXPECT_EQ(resumed.rank(r).Line("replica"), expected);
    const int64_t read = std::stoll(resumed.rank(r).Line("read"));
    if (read < 0) GTEST_SKIP() << "the kernel does not count here";
    EXPECT_GE(read, kReplica * 8 / 3 - (6 << 20)) << r;  // its share, to a block and a half
    EXPECT_LE(read, kReplica * 8 / 3 + (6 << 20)) << r;
    sum += read;
  }
  EXPECT_GE(sum, kReplica * 8);
  EXPECT_LE(sum, kReplica * 8 * 105 / 100);
  EXPECT_THAT(resumed.Log(), HasSubstr("25.3 MB read for 25.2 MB of state"));
}

#ifdef CAIRN_PRELOAD
bool RunsThread(pid_t pid, const std::string& name) {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    if (ReadFile(task.path() / "comm") == name + "\n") return true;
  }
  return false;
}

// The environment of ranks whose own thread is hindered (hinder.c).
std::map<std::string, std::string> Hindered(const std::string& how) {
  return {{"LD_PRELOAD", std::string(CAIRN_PRELOAD) + ":" + CAIRN_HINDER}, {"HINDER", how}};
}

TEST(Exchange, ARankThatIsKilledWhileOthersWaitForItsPartEndsTheRestoreOfAll) {
  TempDir tmp;
  const std::string dir = tmp.path() + "/run";
  SaveInTheMiddle(dir, 2, kReplica / 2);
  Step resumed(
      {.ranks = 3, .dir = dir, .args = Args(kReplica / 2), .env = Hindered("stuck 1"), .restart = 1});
  ASSERT_TRUE(WaitFor([&] {
    return RunsThread(resumed.rank(0).pid, "cairn-bulk") && RunsThread(resumed.rank(2).pid, "cairn-bulk");
  })) << resumed.Log();
  resumed.Kill(1, SIGKILL);
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  for (const int r : {0, 2}) {
    EXPECT_EQ(resumed.rank(r).exit_code(), 4) << resumed.Log();
    EXPECT_THAT(resumed.rank(r).Line("restore"), HasSubstr("rank 1 is gone"));
  }
  EXPECT_THAT(resumed.Log(), Not(HasSubstr("damaged")));
}

TEST(Exchange, RanksThatCannotReachEachOtherReadForThemselves) {
  TempDir tmp;
  const std::string dir = tmp.path() + "/run";
  const std::string expected = SaveInTheMiddle(dir, 2, kReplica / 2);
  Step resumed({.ranks = 3, .dir = dir, .args = Args(kReplica / 2), .env = Hindered("deaf"), .restart = 1});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(resumed.rank(r).Line("restore"), "0 ") << resumed.Log();
    EXPECT_EQ(resumed.rank(r).Line("replica"), expected);
  }
  EXPECT_THAT(resumed.Log(), HasSubstr("each reads all that it needs instead"));
}
#endif

}  // namespace
}  // namespace cairn::testing
