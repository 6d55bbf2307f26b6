// Whole sessions of real processes whose run lies in a bucket of a real server (tests/support/s3_server).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kNoServer = 3;  // exit code of tests/support/s3_server

struct Ran {
  int code = -1;
  std::string out;
};

Ran Shell(const std::string& command) {
  Ran ran;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  char part[4096];
  while (const size_t n = fread(part, 1, sizeof part, pipe)) ran.out.append(part, n);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

class RunInABucket : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Ran started =
        Shell(std::string(CAIRN_S3_SERVER " start ") + folder_->path() + "/server 2>/dev/null");
    if (started.code == kNoServer) return;
    ASSERT_EQ(started.code, 0) << started.out;
    std::istringstream lines(started.out);
    for (std::string line; std::getline(lines, line);) {
      const size_t equals = line.find('=');
      if (equals == std::string::npos) continue;
      setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
      if (line.starts_with("CAIRN_S3_ENDPOINT=")) endpoint_ = line.substr(equals + 1);
    }
    const Ran made = Shell(
        "curl --silent --show-error --fail --aws-sigv4 aws:amz:us-east-1:s3 --header "
        "x-amz-content-sha256:UNSIGNED-PAYLOAD --user "
        "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY --request PUT $CAIRN_S3_ENDPOINT/cairn-runs");
    ASSERT_EQ(made.code, 0) << made.out;
  }
  static void TearDownTestSuite() {
    if (!endpoint_.empty()) Shell(std::string(CAIRN_S3_SERVER " stop ") + folder_->path() + "/server");
    delete folder_;
  }
  void SetUp() override {
    if (endpoint_.empty())
      GTEST_SKIP() << "this machine has no server of S3 (contrib/install-deps installs one)";
  }

  std::map<std::string, std::string> Env(std::map<std::string, std::string> more = {}) const {
    more.insert({"CAIRN_S3_ENDPOINT", endpoint_});
    return more;
  }
  // `cairn ARGS`, which must end with 0. What it says.
  static std::string Cairn(const std::string& args) {
    const Ran ran = Shell(CAIRN_COMMAND " " + args);
    EXPECT_EQ(ran.code, 0) << "cairn " << args << "\n" << ran.out;
    return ran.out;
  }
  static pid_t Gateway() {
    return static_cast<pid_t>(std::stol(ReadFile(folder_->path() + "/server/rgw.pid")));
  }
  static void RestartGateway() {
    Shell("cd / && export CEPH_CONF=" + folder_->path() + "/server/ceph.conf; " +
          "radosgw -n client.rgw -f >/dev/null 2>&1 </dev/null & echo $! >" + folder_->path() +
          "/server/rgw.pid");
    EXPECT_TRUE(
        WaitFor([] { return Shell("curl --silent --fail --max-time 2 $CAIRN_S3_ENDPOINT/").code == 0; },
                std::chrono::seconds(60)));
  }

  static inline const TempDir* folder_ = new TempDir;
  static inline std::string endpoint_;  // "" = there is no server
  const std::string dir_ =
      "s3://cairn-runs/" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::vector<std::string> Args(const std::string& steps, const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"--n", "10007", "--steps", steps, "--step-us", "2000"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::string UndisturbedHash(const std::string& steps) {
  const TempDir tmp;
  Step step({.ranks = 1, .dir = tmp.path() + "/run", .args = Args(steps), .env = {{"CAIRN_ON", "preempt"}}});
  EXPECT_TRUE(step.Join()) << step.Log();
  return step.Hash();
}

TEST_F(RunInABucket, IsResumedAfterAKillToTheSameBitsAndObeysTheCommands) {
  {
    Step step({.ranks = 4,
               .dir = dir_,
               .args = Args("1000000",
                            {"--save-at", "10", "--save-at", "20", "--wait-at", "10", "--wait-at", "20"}),
               .env = Env()});
    ASSERT_TRUE(WaitFor([&] { return step.rank(3).Out().find("waited 0\nwaited 0\n") != std::string::npos; }))
        << step.Log();
    EXPECT_THAT(Cairn("status " + dir_), HasSubstr("step"));
    step.KillAll(SIGKILL);
    ASSERT_TRUE(step.Join());
  }
  EXPECT_THAT(Cairn("ls " + dir_), HasSubstr("2 checkpoints\n"));
  EXPECT_THAT(Cairn("verify " + dir_), HasSubstr("good"));
  Cairn("tag " + dir_ + "@10 first");
  EXPECT_THAT(Cairn("show " + dir_ + "@first"), HasSubstr("step-000000000010.e1."));
  EXPECT_NE(Shell(CAIRN_COMMAND " diff " + dir_ + "@10 " + dir_ + "@20").code, 0);  // they differ
  Cairn("export " + dir_ + "@20 " + folder_->path() + "/exported.safetensors --to safetensors");
  EXPECT_GT(std::filesystem::file_size(folder_->path() + "/exported.safetensors"), 10007u * 8);

  std::filesystem::create_directory(folder_->path() + "/local");
  Step resumed({.ranks = 3,
                .dir = dir_,
                .args = Args("60"),
                .env = Env({{"CAIRN_LOCAL", folder_->path() + "/local"}, {"CAIRN_FILES", "per-node"}}),
                .restart = 1});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  for (int r = 0; r < 3; ++r)
    EXPECT_THAT(resumed.rank(r).Line("resumed"), StartsWith("20 0")) << resumed.Log();
  EXPECT_EQ(resumed.Hash(), UndisturbedHash("60")) << resumed.Log();
  EXPECT_THAT(Cairn("why " + dir_), HasSubstr("finished"));
  EXPECT_THAT(Cairn("verify " + dir_), HasSubstr("good"));
  const std::string files = Cairn("show " + dir_);  // of two nodes
  EXPECT_THAT(files, AllOf(HasSubstr("shard-00002-model"), Not(HasSubstr("shard-00003-model"))));
  Cairn("prune " + dir_ + " --keep last=1");
  const std::string left = Cairn("ls " + dir_);
  EXPECT_THAT(left, HasSubstr("2 checkpoints, finished\n"));  // the last one, and
  EXPECT_THAT(left, HasSubstr("tag first"));
}

TEST_F(RunInABucket, GivesUpASaveWhileTheServerIsGoneAndMakesTheNextOne) {
  const std::string steps = "60", gone = folder_->path() + "/gone", back = folder_->path() + "/back";
  Step step({.ranks = 2,
             .dir = dir_,
             .args = Args(steps, {"--wait-file", gone, "--save-at", "10", "--wait-at", "10", "--hold-at",
                                  "20", "--hold-file", back, "--save-at", "30", "--wait-at", "30"}),
             .env = Env({{"CAIRN_S3_DEADLINE", "1s"}})});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("resumed").empty(); })) << step.Log();
  ASSERT_EQ(kill(Gateway(), SIGKILL), 0);
  std::ofstream(gone).put('\n');
  ASSERT_TRUE(WaitFor([&] { return step.rank(0).Err().find("no save (request): ") != std::string::npos; }))
      << step.Log();
  RestartGateway();
  std::ofstream(back).put('\n');
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("saved step 30 (request)"));
  EXPECT_EQ(step.Hash(), UndisturbedHash(steps)) << step.Log();
  EXPECT_THAT(Cairn("verify " + dir_), HasSubstr("good"));
}

}  // namespace
}  // namespace cairn::testing
