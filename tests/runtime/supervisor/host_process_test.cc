// HostProcess, with hosts that are shell scripts.
#include "runtime/supervisor/host_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostProcessTest : public ::testing::Test {
 protected:
  // Of a host that does `body`, with the pair as descriptor 3.
  Result<std::unique_ptr<HostProcess>> Start(const std::string& body, int bound_ms = 60000) {
    const std::string program = here_ / "host";
    std::ofstream(program) << "#!/bin/sh\ncd " << here_.path() << "\n" << body << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return HostProcess::Start(program, {"PATH=/usr/bin:/bin", "WORD=given"},
                              std::chrono::milliseconds(bound_ms));
  }
  std::string Why(const std::string& body, Code code) {
    const auto host = Start(body);
    EXPECT_EQ(host.status().code(), code) << body;
    return host.status().message();
  }

  TempDir here_;
};

TEST_F(HostProcessTest, HandsOverAndEndsWithItsOwner) {
  testing::internal::CaptureStderr();
  auto host = Start(R"(printf "env SLURM_CAIRN_A=1 = $WORD\nsay hello\n" >&3
printf 'env SLURM_CAIRN_B=\nend\n' >&3
cat <&3; echo "$*" >ended)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "cairn: hello\n");
  ASSERT_TRUE(host.ok()) << host.status().message();
  EXPECT_THAT((*host)->variables(), ElementsAre("SLURM_CAIRN_A=1 = given", "SLURM_CAIRN_B="));
  EXPECT_FALSE(std::filesystem::exists(here_ / "ended"));
  *host = nullptr;
  std::ifstream ended(here_ / "ended");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(ended), {}), "host --fd 3\n");
}

TEST_F(HostProcessTest, IgnoresNoSignalThatItsOwnerIgnores) {
  const auto before = signal(SIGUSR1, SIG_IGN);
  EXPECT_THAT(Why("kill -USR1 $$; echo off it is ignored >&3", Code::kUnavailable),
              HasSubstr("it ended early"));
  signal(SIGUSR1, before);
}

TEST_F(HostProcessTest, RefusesTheStepWhereItSaysSo) {
  EXPECT_EQ(Why("printf 'env SLURM_CAIRN_A=1\nfail no such value\n' >&3", Code::kInvalid), "no such value");
}

TEST_F(HostProcessTest, IsOfNoUseWhenItLeavesOrTalksNonsense) {
  EXPECT_THAT(Why("echo off no port is free >&3; cat <&3", Code::kUnavailable),
              HasSubstr("host does not start checkpointing: no port is free"));
  EXPECT_THAT(Why("printf 'env SLURM_CAIRN_A=1\n' >&3", Code::kUnavailable), HasSubstr("it ended early"));
  EXPECT_THAT(Why("echo env PATH=/forged >&3; exec sleep 600", Code::kUnavailable),
              HasSubstr("their versions differ"));
  EXPECT_THAT(Why("yes >&3", Code::kUnavailable), HasSubstr("their versions differ"));
  EXPECT_THAT(Why("yes | tr -d '\\n' >&3", Code::kUnavailable), HasSubstr("its answer is too long"));
  const auto none = HostProcess::Start("/no/such/cairn", {}, std::chrono::milliseconds(60000));
  EXPECT_EQ(none.status().code(), Code::kUnavailable);
  EXPECT_THAT(none.status().message(), HasSubstr("No such file"));
}

TEST_F(HostProcessTest, ThatDoesNotAnswerIsKilledWhenTheTimeIsOver) {
  const auto host = Start("exec sleep 600", 1);
  EXPECT_THAT(host.status().message(), HasSubstr("it does not answer"));
}

}  // namespace
}  // namespace cairn
