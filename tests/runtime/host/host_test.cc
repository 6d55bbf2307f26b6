// The host process's hand-over, over a real pair.
#include "runtime/host/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runtime/host/host_protocol.h"
#include "tests/runtime/control/world.h"

namespace cairn {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Environment = std::map<std::string, std::string>;

// `cairn host --fd` as a child, with a folder of its own as HOME and working directory.
class HostProcess {
 public:
  explicit HostProcess(const Environment& environment) {
    std::string name = std::filesystem::temp_directory_path() / "cairn-hand-over-XXXXXX";
    home = mkdtemp(name.data());
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fd_ = pair[0];
    pid_ = fork();
    if (pid_ == 0) {
      close(pair[0]);
      setenv("HOME", home.c_str(), 1);
      unsetenv("XDG_STATE_HOME");
      if (chdir(home.c_str()) != 0) _exit(9);
      for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
      HostOptions options;
      options.fd = pair[1];
      options.listen = "127.0.0.1";
      _exit(HostMain(options));
    }
    close(pair[1]);
  }
  ~HostProcess() {
    if (pid_ > 0) End();
    std::filesystem::remove_all(home);
  }

  // The lines up to `end`, or all of them when the host ends by itself.
  std::vector<std::string> Lines() {
    std::string text;
    char c;
    pollfd p{fd_, POLLIN, 0};
    while (!text.ends_with("\nend\n") && poll(&p, 1, 20000) == 1 && read(fd_, &c, 1) == 1) text += c;
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t newline = text.find('\n', at);
      lines.push_back(text.substr(at, newline - at));
      at = newline == std::string::npos ? text.size() : newline + 1;
    }
    return lines;
  }

  // srun ends; the host's exit code.
  int End() {
    close(fd_);
    int status = -1;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string home;

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
};

std::string Value(const std::vector<std::string>& lines, const std::string& name) {
  const std::string prefix = "env " + name + "=";
  for (const std::string& line : lines) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return "(absent)";
}

TEST(HostMain, HandsOverTheEnvironmentServesAndEndsWithThePair) {
  HostProcess host(Environment{{"CAIRN_PLUGIN_CAIRN_CHECKPOINT", "10m"}, {"CAIRN_DIR", "run7"}});
  const auto lines = host.Lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "end");
  EXPECT_EQ(Value(lines, "SLURM_CAIRN_CHECKPOINT"), "10m");
  EXPECT_EQ(Value(lines, "SLURM_CAIRN_KEY"), "0.0.0");
  EXPECT_EQ(Value(lines, "SLURM_CAIRN_DIR"), (std::filesystem::canonical(host.home) / "run7").string());

  FabricOptions options;
  options.key = Value(lines, "SLURM_CAIRN_KEY");
  options.token = *Secret::FromHex(Value(lines, "SLURM_CAIRN_TOKEN"));
  options.rendezvous = Value(lines, "SLURM_CAIRN_RENDEZVOUS");
  Member member(options);
  ASSERT_TRUE(member.AwaitReady()->status.ok());
  ASSERT_TRUE(member
                  .Do([](Fabric* f) {
                    return f->SendToHost(CauseQuery::kType, EncodeHostMessage(CauseQuery{7, 0}));
                  })
                  .ok());
  const auto reply = member.Await([](const Event& e) { return e.kind == Event::kHost; });
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->type, CauseReply::kType);
  EXPECT_EQ(DecodeHostMessage<CauseReply>(reply->text)->id, 7u);
  ASSERT_TRUE(member
                  .Do([](Fabric* f) {
                    return f->SendToHost(Saved::kType, EncodeHostMessage(Saved{"/d", "main", 120}));
                  })
                  .ok());
  ASSERT_TRUE(member
                  .Do([](Fabric* f) {
                    return f->SendToHost(CauseQuery::kType, EncodeHostMessage(CauseQuery{8, 0}));
                  })
                  .ok());
  ASSERT_TRUE(member.Await([](const Event& e) { return e.kind == Event::kHost; })
                  .has_value());  // so the line before it was taken
  EXPECT_EQ(host.End(), 0);

  std::ifstream registry(host.home + "/.local/state/cairn/runs.jsonl");
  std::string started, saved;
  ASSERT_TRUE(std::getline(registry, started) && std::getline(registry, saved));
  EXPECT_THAT(started, StartsWith(R"({"event":"start","job":0,"step":0,"restart":0,"dir":")"));
  EXPECT_THAT(saved, StartsWith(R"({"event":"saved")"));
  EXPECT_THAT(saved, HasSubstr(R"("saved_step":120)"));
}

TEST(HostMain, UsesTheDirectoryOfCairnRunsFirstLifeAndReportsToIt) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  HostProcess host(
      {{"CAIRN_PLUGIN_CAIRN_CHECKPOINT", "10m"},
       {"CAIRN_PLUGIN_CAIRN_DIR", "run-%s"},
       {"CAIRN_HOST_JOB", "7"},
       {"CAIRN_HOST_STEP", "3"},
       {"CAIRN_RUN_JOB", "7"},
       {"CAIRN_RUN_LIFE", "1"},
       {"CAIRN_RUN_ID", "1f00c2d9"},
       {"CAIRN_RUN_DIR", "/scratch/run-2"},
       {"CAIRN_RUN_MIN_NODES", "2"},
       {"CAIRN_RUN_REPORT", "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(report[1])}});
  const auto lines = host.Lines();
  EXPECT_EQ(Value(lines, "SLURM_CAIRN_DIR"), "/scratch/run-2");
  EXPECT_EQ(Value(lines, "SLURM_CAIRN_LIFE"), "1f00c2d9.1");
  EXPECT_EQ(Value(lines, "SLURM_CAIRN_MIN_NODES"), "2");
  char line[64] = "";
  EXPECT_EQ(read(report[0], line, sizeof line - 1), 15);
  EXPECT_STREQ(line, "/scratch/run-2\n");
  close(report[0]);
  close(report[1]);
}

TEST(HostMain, TakesNothingFromTheCairnRunOfAnotherJob) {
  for (const std::string job : {"6", ""}) {
    HostProcess host({{"CAIRN_PLUGIN_CAIRN_CHECKPOINT", "10m"},
                      {"CAIRN_PLUGIN_CAIRN_DIR", "/scratch/own"},
                      {"CAIRN_HOST_JOB", "7"},
                      {"CAIRN_RUN_JOB", job},
                      {"CAIRN_RUN_LIFE", "1"},
                      {"CAIRN_RUN_DIR", "/scratch/run-2"}});
    const auto lines = host.Lines();
    EXPECT_EQ(Value(lines, "SLURM_CAIRN_DIR"), "/scratch/own");
    EXPECT_EQ(Value(lines, "SLURM_CAIRN_LIFE"), "(absent)");
  }
}

TEST(HostMain, ReportsIntoNothingButAPipe) {
  const std::string report =
      std::filesystem::temp_directory_path() / ("cairn-no-pipe-" + std::to_string(getpid()));
  std::ofstream(report) << "somebody's file\n";
  HostProcess host({{"CAIRN_PLUGIN_CAIRN_CHECKPOINT", "10m"},
                    {"CAIRN_PLUGIN_CAIRN_DIR", "/scratch/own"},
                    {"CAIRN_HOST_JOB", "7"},
                    {"CAIRN_RUN_JOB", "7"},
                    {"CAIRN_RUN_LIFE", "0"},
                    {"CAIRN_RUN_ID", "1f00c2d9"},
                    {"CAIRN_RUN_REPORT", report}});
  EXPECT_EQ(Value(host.Lines(), "SLURM_CAIRN_LIFE"), "1f00c2d9.0");
  std::string line;
  std::getline(std::ifstream(report), line);
  EXPECT_EQ(line, "somebody's file");
  std::filesystem::remove(report);
}

TEST(HostMain, AnswersWhileTheHomeDirectoryHangs) {
  std::string home = std::filesystem::temp_directory_path() / "cairn-hanging-home-XXXXXX";
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  ASSERT_EQ(mkdir((home + "/cairn").c_str(), 0700), 0);
  const std::string registry = home + "/cairn/runs.jsonl";
  ASSERT_EQ(mkfifo(registry.c_str(), 0600), 0);  // opening it for writing waits for a reader
  {
    HostProcess host(Environment{{"CAIRN_CHECKPOINT", "on"}, {"CAIRN_DIR", "/d"}, {"XDG_STATE_HOME", home}});
    const auto lines = host.Lines();
    FabricOptions options;
    options.key = Value(lines, "SLURM_CAIRN_KEY");
    options.token = *Secret::FromHex(Value(lines, "SLURM_CAIRN_TOKEN"));
    options.rendezvous = Value(lines, "SLURM_CAIRN_RENDEZVOUS");
    Member member(options);
    ASSERT_TRUE(member.AwaitReady()->status.ok());
    ASSERT_TRUE(member
                    .Do([](Fabric* f) {
                      return f->SendToHost(CauseQuery::kType, EncodeHostMessage(CauseQuery{7, 0}));
                    })
                    .ok());
    EXPECT_TRUE(member.Await([](const Event& e) { return e.kind == Event::kHost; }).has_value());
    std::string started;
    std::getline(std::ifstream(registry), started);
    EXPECT_THAT(started, StartsWith(R"({"event":"start")"));
    EXPECT_EQ(host.End(), 0);
  }
  std::filesystem::remove_all(home);
}

TEST(HostMain, FailsTheStepForARefusedValue) {
  HostProcess host(Environment{{"CAIRN_CHECKPOINT", "10x"}});
  const auto lines = host.Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], StartsWith("fail CAIRN_CHECKPOINT=10x"));
  EXPECT_EQ(host.End(), 1);
}

TEST(HostMain, FailsTheStepForADirectoryThatTheSiteDoesNotAllow) {
  HostProcess host(Environment{
      {"CAIRN_CHECKPOINT", "on"}, {"CAIRN_DIR", "/elsewhere"}, {"CAIRN_SITE_DIRS", "/scratch:/work"}});
  const auto lines = host.Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(
      lines[0],
      "fail --checkpoint-dir=/elsewhere is refused: this site keeps checkpoints only below /scratch:/work");
}

TEST(HostMain, StepsAsideOnItsOwnFaultsUnlessProtectionIsRequired) {
  const Socket taken = std::move(*ListenTcp("127.0.0.1", 0, 0));
  const std::string port = std::to_string(LocalPort(taken));
  Environment environment = {
      {"CAIRN_CHECKPOINT", "on"}, {"CAIRN_DIR", "/d"}, {"CAIRN_SITE_PORTS", port + "-" + port}};
  HostProcess lenient(environment);
  environment["CAIRN_REQUIRE"] = "yes";
  HostProcess strict(environment);
  EXPECT_THAT(lenient.Lines(), testing::ElementsAre(StartsWith("off the host process cannot listen")));
  EXPECT_THAT(strict.Lines(), testing::ElementsAre(StartsWith("fail the host process cannot listen")));
}

}  // namespace
}  // namespace cairn
