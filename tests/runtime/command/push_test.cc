// `cairn push` that is killed, finds no room, or meets damage: what it leaves, and what it says. What it copies is tests/runtime/mirror's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runtime/formats/names.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/command/sample_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

std::vector<int64_t> Steps(const std::string& dir) {
  std::vector<int64_t> steps;
  const Json listed = RunCairn({"ls", "--json", dir}).Json();
  for (const Json& c : listed["checkpoints"]) steps.push_back(c["step"]);
  return steps;
}

void ExpectWhole(const std::string& dir, const std::vector<int64_t>& steps) {
  EXPECT_EQ(Steps(dir), steps);
  for (const int64_t step : steps) {
    const Outcome verified = RunCairn({"verify", dir + "@" + std::to_string(step)});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  }
}

TEST(CairnPush, MakesASecondRunThatAllCommandsKnow) {
  SampleRun run;
  run.Commit(100);
  run.Commit(200);
  const std::string to = NewFolder() + "/copy";
  const Outcome pushed = RunCairn({"push", run.path(), to});
  EXPECT_EQ(pushed.code, 0) << pushed.err;
  EXPECT_THAT(pushed.out, HasSubstr("step 200 copied to " + to + ": 9."));
  EXPECT_THAT(RunCairn({"push", run.path(), to}).out, HasSubstr("step 200 is there already\n"));
  const Json all = RunCairn({"push", run.path(), to, "--all", "--json"}).Json();
  EXPECT_EQ(all["checkpoints"].size(), 2U);
  EXPECT_EQ(all["checkpoints"][0]["was_there"], false);
  EXPECT_EQ(all["checkpoints"][1]["was_there"], true);
  EXPECT_EQ(RunCairn({"verify", to + "@100"}).code, 0);
  const Json ls = RunCairn({"ls", to, "--json"}).Json();
  EXPECT_EQ(ls["run"], RunCairn({"ls", run.path(), "--json"}).Json()["run"]);
  EXPECT_EQ(ls["checkpoints"].size(), 2U);
  EXPECT_EQ(RunCairn({"prune", to, "--keep", "last=1", "--json"}).Json()["kept"], 1);
  const Outcome inside = RunCairn({"push", run.path(), run.path() + "/copy"});
  EXPECT_EQ(inside.code, 2);
  EXPECT_THAT(inside.err, HasSubstr("lies in the run's directory"));
}

TEST(CairnPush, MakesACopyOnlyOfWhatWasSavedLongEnoughAfterTheNewest) {
  SampleRun run;
  run.Commit(100);
  const std::string to = NewFolder() + "/copy";
  EXPECT_THAT(RunCairn({"push", "--gently", "--every=1h", run.path(), to}).out, HasSubstr("step 100 copied"));
  EXPECT_THAT(RunCairn({"push", "--every=1h", run.path(), to}).out, HasSubstr("step 100 is there already"));
  run.Commit(200);
  const Outcome early = RunCairn({"push", "--every=1h", run.path(), to});
  EXPECT_EQ(early.code, 0) << early.err;
  EXPECT_EQ(early.out,
            "step 200 is not copied: it was saved less than 1h after the newest copy in " + to + "\n");
  const Json told = RunCairn({"push", "--every=1h", "--json", run.path(), to}).Json();
  EXPECT_TRUE(told["checkpoints"].empty());
  EXPECT_GT(told["too_early_ns"], INT64_C(3000000000000));  // saved seconds after the other, or minutes
  EXPECT_LE(told["too_early_ns"], INT64_C(3600000000000));
  ExpectWhole(to, {100});
  EXPECT_EQ(RunCairn({"push", "--every=soon", run.path(), to}).code, 2);
}

TEST(CairnPush, AsksForThePlaceWhereTheRunKnowsNone) {
  SampleRun run;
  run.Commit(100);
  const Outcome pushed = RunCairn({"push", run.path()});
  EXPECT_EQ(pushed.code, 2);
  EXPECT_THAT(pushed.err, HasSubstr("was not saved with --checkpoint-copy: name DEST"));
}

#ifdef CAIRN_FAULT_LIBRARY
TEST(CairnPush, ThatIsKilledAnywhereIsMadeUpForByTheNext) {
  SampleRun run;
  const std::string first = run.Commit(100), folder = NewFolder();
  run.BeginLife(first);
  run.Commit(200);
  const auto push = [&](const std::string& to, int restart, const std::map<std::string, std::string>& fault) {
    std::ofstream(folder + "/state", std::ios::binary) << std::string(16, '\0');
    // A claim that was never given up is known to be dead by a later life of the same job: nobody waits for 30 s.
    std::map<std::string, std::string> environment = {{"SLURM_JOB_ID", "7"},
                                                      {"SLURM_RESTART_COUNT", std::to_string(restart)}};
    environment.insert(fault.begin(), fault.end());
    if (!fault.empty())
      environment.merge(std::map<std::string, std::string>{{"LD_PRELOAD", CAIRN_FAULT_LIBRARY},
                                                           {"CAIRN_FAULT_DIR", to},
                                                           {"CAIRN_FAULT_STATE", folder + "/state"}});
    return RunCairn({"push", "--all", run.path(), to}, environment);
  };
  const std::string trace = folder + "/trace";
  ASSERT_EQ(push(folder + "/unharmed", 0, {{"CAIRN_FAULT_TRACE", trace}}).code, 0);
  const std::string calls = ReadText(trace);
  const auto count = std::count(calls.begin(), calls.end(), '\n');
  ASSERT_GT(count, 40);
  constexpr int kKills = 10;
  for (int kill = 0; kill < kKills; ++kill) {
    const std::string to = folder + "/copy-" + std::to_string(kill);
    const auto call = 1 + kill * (count - 1) / (kKills - 1);
    SCOPED_TRACE("call " + std::to_string(call) + " of " + std::to_string(count));
    const Outcome killed = push(to, 0,
                                {{"CAIRN_FAULT_ACTION", kill % 2 == 0 ? "kill" : "torn"},
                                 {"CAIRN_FAULT_FIRST", std::to_string(call)}});
    ASSERT_EQ(killed.code, 128 + 9) << killed.out << killed.err;
    if (fs::exists(to + "/RUN")) ExpectWhole(to, Steps(to));
    const Outcome again = push(to, 1, {});
    EXPECT_EQ(again.code, 0) << again.err;
    ExpectWhole(to, {200, 100});
  }
}
#endif

TEST(CairnPush, SaysThatThePlaceIsFullAndLeavesWhatIsThere) {
  SampleRun run;
  run.Commit(100);
  const std::string to = NewFolder();
  if (mount("cairn", to.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "needs root, to mount a small tmpfs";
  ASSERT_EQ(RunCairn({"push", run.path(), to}).code, 0);
  const std::string second = run.Commit(200);
  {
    std::ofstream filler(to + "/full", std::ios::binary);
    while (filler << std::string(4096, 'x') << std::flush) {
    }
  }
  fs::resize_file(to + "/full",
                  fs::file_size(to + "/full") - 12288);  // the claim, and no checkpoint
  const Outcome full = RunCairn({"push", run.path(), to});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr(to + "/step-000000000200.e1."));
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  ExpectWhole(to, {100});
  EXPECT_EQ(
      std::count_if(fs::directory_iterator(to), fs::directory_iterator(),
                    [](const auto& entry) { return entry.path().filename().string().starts_with("step-"); }),
      1);
  fs::remove(to + "/full");
  EXPECT_EQ(RunCairn({"push", run.path(), to}).code, 0);
  ExpectWhole(to, {200, 100});
  umount2(to.c_str(), MNT_DETACH);
}

TEST(CairnPush, ToldAsJsonSaysWhatWasCopiedBesideWhatWasNot) {
  SampleRun run;
  const std::string damaged = run.Commit(100), good = run.Commit(200);
  fs::resize_file(run.path() + "/" + damaged + "/" + names::Shard(1), 10);
  const std::string to = NewFolder() + "/copy";
  const Outcome pushed = RunCairn({"push", "--all", "--json", run.path(), to});
  EXPECT_EQ(pushed.code, 1);
  EXPECT_THAT(pushed.err, StartsWith("cairn: not copied: "));
  const Json told = pushed.Json();
  ASSERT_EQ(told["checkpoints"].size(), 1U) << told;
  EXPECT_EQ(told["checkpoints"][0]["checkpoint"], good);
  ASSERT_EQ(told["passed_over"].size(), 1U) << told;
  EXPECT_EQ(told["passed_over"][0]["checkpoint"], damaged);
  EXPECT_EQ(told["passed_over"][0]["code"], "damage");
  EXPECT_THAT(told["passed_over"][0]["message"].get<std::string>(), HasSubstr("it was truncated"));
  EXPECT_FALSE(told.contains("error"));
  ExpectWhole(to, {200});

  SampleRun other;
  other.Commit(100);
  const Outcome refused = RunCairn({"push", "--json", other.path(), to});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.Json()["error"]["code"], "mismatch");
  EXPECT_TRUE(refused.Json()["checkpoints"].empty());
}

}  // namespace
}  // namespace cairn
