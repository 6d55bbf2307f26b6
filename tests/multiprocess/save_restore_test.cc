// Whole sessions of real processes: saved, killed, resumed. The oracle is an undisturbed run of the same program, and the catalog read back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/lives.h"
#include "runtime/io/hash.h"
#include "tests/multiprocess/launcher.h"
#include "tests/runtime/slurm/fake_scontrol.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<Checkpoint> Committed(const std::string& dir) {
  auto run = RunDirectory::OpenExisting(dir);
  if (!run.ok()) return {};
  auto listing = ListCheckpoints(*run);
  return listing.ok() ? listing->checkpoints : std::vector<Checkpoint>();
}

std::string UndisturbedHash(const std::vector<std::string>& args) {
  TempDir tmp;
  Step step({.ranks = 1, .dir = tmp.path() + "/run", .args = args, .env = {{"CAIRN_ON", "preempt"}}});
  EXPECT_TRUE(step.Join()) << step.Log();
  return step.Hash();
}

const std::vector<std::string> kArgs = {"--n", "10007", "--steps", "60", "--step-us", "2000"};

const std::vector<std::string> kEndless = {"--n", "10007", "--steps", "1000000", "--step-us", "2000"};

std::vector<std::string> With(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// A save at this very step: rank 0 asks for it, and all wait until it is durable. Without the wait the ranks would step on while they agree,
// on a busy machine to the end of their life.
std::vector<std::string> SaveAt(int64_t step) {
  return {"--save-at", std::to_string(step), "--wait-at", std::to_string(step)};
}

void FlipAByte(const std::string& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(offset);
  file.put(byte);
}

class SaveRestore : public ::testing::Test {
 protected:
  TempDir tmp_;
  const std::string dir_ = tmp_.path() + "/run";
};

// Runs `ranks` ranks until a save at step `at` is committed and known to the user's registry, then kills everything.
void SaveThenKill(const std::string& dir, int ranks, int64_t at) {
  Step step({.ranks = ranks,
             .dir = dir,
             .args = With(kEndless, SaveAt(at)),
             .env = {{"XDG_STATE_HOME", std::filesystem::path(dir).parent_path()}}});
  const std::string registry = std::filesystem::path(dir).parent_path() / "cairn/runs.jsonl";
  ASSERT_TRUE(WaitFor([&] { return ReadFile(registry).find("\"saved\"") != std::string::npos; }))
      << step.Log();
  step.KillAll(SIGKILL);
  ASSERT_TRUE(step.Join());
}

TEST_F(SaveRestore, EveryMemberSeesWhatAllNotedOfThemselvesAtTheBoundaryOfTheSave) {
  SaveThenKill(dir_, 4, 20);
  Step resumed({.ranks = 3, .dir = dir_, .args = kArgs, .restart = 1});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  for (int r = 0; r < 3; ++r) {
    for (const std::string member : {"0", "1", "2", "3"})
      EXPECT_THAT(resumed.rank(r).Out(), HasSubstr("note " + member + " of " + member + " at 20\n"));
  }
}

TEST_F(SaveRestore, ResumesWithAnyNumberOfRanksToTheSameBits) {
  const std::string expected = UndisturbedHash(kArgs);
  for (const int64_t at : {20, 21}) {
    for (const int ranks : {1, 2, 3, 5, 6, 7, 8}) {
      TempDir tmp;
      const std::string dir = tmp.path() + "/run";
      SaveThenKill(dir, 4, at);
      Step resumed({.ranks = ranks, .dir = dir, .args = kArgs, .restart = 1});
      ASSERT_TRUE(resumed.Join()) << resumed.Log();
      for (int r = 0; r < ranks; ++r)
        EXPECT_THAT(resumed.rank(r).Line("resumed"), StartsWith(std::to_string(at) + " 0"));
      EXPECT_EQ(resumed.Hash(), expected) << ranks << " ranks, saved at " << at << "\n" << resumed.Log();
    }
  }
}

// [1429, 7]: most flat ranges begin and end inside a row.
TEST_F(SaveRestore, LoadsFlatRangesIntoRowsAndTheReverse) {
  const std::vector<std::string> args = {"--n",     "10003", "--columns", "7",
                                         "--steps", "60",    "--step-us", "2000"};
  const std::vector<std::string> flat = With(args, {"--flat"});
  const std::string expected = UndisturbedHash(args);
  for (const bool from_flat : {true, false}) {
    TempDir tmp;
    const std::string dir = tmp.path() + "/run";
    {
      Step step({.ranks = 3,
                 .dir = dir,
                 .args = With(With(from_flat ? flat : args, SaveAt(20)), {"--exit-at", "21"})});
      ASSERT_TRUE(step.Join()) << step.Log();
      ASSERT_EQ(Committed(dir).size(), 1u) << step.Log();
    }
    Step between({.ranks = 4, .dir = dir, .args = from_flat ? args : flat, .restart = 1});
    ASSERT_TRUE(between.Join()) << between.Log();
    EXPECT_EQ(between.Hash(), expected) << between.Log();
    Step after({.ranks = 5, .dir = dir, .args = from_flat ? flat : args, .job = 101});
    ASSERT_TRUE(after.Join()) << after.Log();
    EXPECT_THAT(after.rank(0).Line("resumed"), StartsWith("60 1"));
    EXPECT_EQ(after.Hash(), expected) << after.Log();
  }
}

TEST_F(SaveRestore, FinalizeSavesOnceAndAFinishedRunSaysSo) {
  {
    Step step({.ranks = 3, .dir = dir_, .args = kArgs});
    ASSERT_TRUE(step.Join()) << step.Log();
    for (int r = 0; r < 3; ++r) EXPECT_EQ(step.rank(r).Line("done"), "0 ");
  }
  ASSERT_EQ(Committed(dir_).size(), 1u);
  EXPECT_EQ(Committed(dir_)[0].id.step, 60);
  EXPECT_EQ(Committed(dir_)[0].manifest.trigger, "end");
  Step again({.ranks = 2, .dir = dir_, .args = kArgs, .job = 101});
  ASSERT_TRUE(again.Join()) << again.Log();
  EXPECT_THAT(again.rank(1).Line("resumed"), StartsWith("60 1"));
  EXPECT_THAT(again.rank(0).Err(), HasSubstr("this run is finished"));
  EXPECT_EQ(again.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, MetricsStandInTheManifestsAndTheBestAreKept) {
  Step step({.ranks = 4,
             .dir = dir_,
             .args = With(kArgs, {"--save-every", "10", "--measure-every", "20"}),
             .env = {{"CAIRN_KEEP", "last=1,best=2:loss:min"}}});
  ASSERT_TRUE(step.Join()) << step.Log();
  // "loss" was 10 at 20, 10 at 40 and 30 at 60; the saves at 30 and 50 were next to none.
  const std::vector<Checkpoint> kept = Committed(dir_);
  std::vector<int64_t> steps;
  for (const Checkpoint& c : kept) steps.push_back(c.id.step);
  ASSERT_THAT(steps, ElementsAre(60, 40, 20));
  EXPECT_EQ(kept.back().manifest.metrics,
            (std::map<std::string, Manifest::Metric>{{"loss", {10, 19}}, {"odd", {1, 19}}}));
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("keeps the last 1, the best 2 by loss (min)\n"));
}

TEST_F(SaveRestore, AnOlderStepOfAFinishedRunIsNotItsEnd) {
  {
    Step step({.ranks = 2, .dir = dir_, .args = With(kArgs, SaveAt(20))});
    ASSERT_TRUE(step.Join()) << step.Log();
  }
  ASSERT_EQ(Committed(dir_).size(), 2u);
  Step again({.ranks = 2, .dir = dir_, .args = kArgs, .env = {{"CAIRN_RESUME", "20"}}, .job = 101});
  ASSERT_TRUE(again.Join()) << again.Log();
  EXPECT_THAT(again.rank(0).Line("resumed"), StartsWith("20 0"));
  EXPECT_EQ(again.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, ARunThatIsNotToBeSavedAtItsEndEndsWithoutErrorAndUnfinished) {
  Step step({.ranks = 2, .dir = dir_, .args = kArgs, .env = {{"CAIRN_ON", "request"}}});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(1).Line("done"), "0 ");
  EXPECT_TRUE(Committed(dir_).empty());
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/FINISHED"));
}

TEST_F(SaveRestore, AnUnprotectedProgramRunsAsIfNothingWereThere) {
  Step step({.ranks = 1, .dir = dir_, .args = kArgs, .env = {{"CAIRN_CHECKPOINT", "on"}}});
  ASSERT_TRUE(step.Join());
  Process bare = step.Start({CAIRN_TOY, "--n", "10007", "--steps", "60", "--step-us", "0"}, {}, "bare");
  int status = 0;
  ASSERT_TRUE(WaitFor([&] { return waitpid(bare.pid, &status, WNOHANG) == bare.pid; }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(bare.Line("hash"), step.rank(0).Line("hash"));
  EXPECT_EQ(bare.Err(), "");
}

TEST_F(SaveRestore, KillsAtRandomMomentsOfASaveNeverCostMoreThanTheSaveUnderWay) {
  const std::vector<std::string> args = {"--n", "400000", "--steps", "40", "--step-us", "1000"};
  const std::string expected = UndisturbedHash(args);
  unsigned seed = 20260101;
  int64_t newest = 0;
  for (int kills = 0; kills < 6; ++kills) {
    Step step(
        {.ranks = 4, .dir = dir_, .args = args, .env = {{"CAIRN_CHECKPOINT", "5steps"}}, .restart = kills});
    ASSERT_TRUE(WaitFor([&] { return !step.rank(0).Line("resumed").empty(); })) << step.Log();
    const int64_t resumed = std::stoll(step.rank(0).Line("resumed"));
    EXPECT_GE(resumed, newest);
    usleep(1000 * (rand_r(&seed) % 60));
    newest = Committed(dir_).empty() ? 0 : Committed(dir_).front().id.step;
    step.KillAll(SIGKILL);
    ASSERT_TRUE(step.Join());
  }
  Step last({.ranks = 4, .dir = dir_, .args = args, .restart = 100});
  ASSERT_TRUE(last.Join()) << last.Log();
  EXPECT_EQ(last.Hash(), expected) << last.Log();
}

TEST_F(SaveRestore, AFlippedByteIsNamedAndTheOlderCheckpointIsUsed) {
  const std::string expected = UndisturbedHash(kArgs);
  SaveThenKill(dir_, 4, 10);
  const std::string older = Committed(dir_).front().name;
  {
    Step second({.ranks = 4, .dir = dir_, .args = With(kEndless, SaveAt(30)), .restart = 1});
    ASSERT_TRUE(WaitFor([&] { return Committed(dir_).size() == 2; })) << second.Log();
  }
  const std::string newest = Committed(dir_).front().name;
  FlipAByte(dir_ + "/" + newest + "/shard-00002-model-00001-of-00001.safetensors", 5000);
  Step resumed({.ranks = 3, .dir = dir_, .args = kArgs, .restart = 2});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  EXPECT_THAT(resumed.rank(0).Err(), HasSubstr(newest + " is damaged and passed over"));
  EXPECT_THAT(resumed.rank(0).Err(), HasSubstr("shard-00002-model-00001-of-00001.safetensors"));
  EXPECT_THAT(resumed.rank(0).Err(), HasSubstr("from " + older));
  EXPECT_EQ(resumed.Hash(), expected);
}

TEST_F(SaveRestore, ACheckpointOfANewerCairnStopsAllRanksAndIsLeftAsItIs) {
  {
    Step step({.ranks = 2, .dir = dir_, .args = With(kArgs, SaveAt(20))});
    ASSERT_TRUE(step.Join()) << step.Log();
  }
  ASSERT_EQ(Committed(dir_).size(), 2u);
  const std::string path = dir_ + "/" + Committed(dir_)[0].name + "/manifest.json";
  std::string text = ReadFile(path);
  text.resize(text.rfind(",\n  \"checksum\""));
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 3");
  text += ",\n  \"checksum\": \"" + Hash128Of(text).ToHex() + "\"\n}\n";
  std::ofstream(path) << text;
  Step resumed({.ranks = 2, .dir = dir_, .args = kArgs, .job = 101});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(resumed.rank(r).Line("restore"), StartsWith("-2 "));
    EXPECT_THAT(resumed.rank(r).Line("restore"), HasSubstr("was written by a newer Cairn"));
  }
  EXPECT_EQ(ReadFile(path), text);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/strikes"));
}

// --checkpoint-from: a new run begins from another one's checkpoint, and goes on from there as that one would have.
class BeginFrom : public SaveRestore {
 protected:
  const std::string new_dir_ = tmp_.path() + "/new";

  std::string Kept() {  // the first run's only checkpoint
    SaveThenKill(dir_, 4, 20);
    return Committed(dir_).front().name;
  }
  static std::string StepOf(const std::string& name) {
    return std::to_string(names::ParseAttempt(name)->step);
  }
};

TEST_F(BeginFrom, AnotherRunsCheckpointAndComeToTheSameEnd) {
  const std::string from = Kept();
  const std::string before = ReadFile(dir_ + "/" + from + "/manifest.json");
  Step step({.ranks = 3,
             .dir = new_dir_,
             .args = kArgs,
             .env = {{"CAIRN_FROM", dir_ + "@" + StepOf(from)}},
             .job = 101});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.rank(2).Line("resumed"), StartsWith(StepOf(from) + " 0"));
  EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs));
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("this run begins from " + dir_ + "@" + from));
  const auto run = RunDirectory::OpenExisting(new_dir_);
  EXPECT_EQ(run->info().origin, (Origin{"cairn", dir_, RunDirectory::OpenExisting(dir_)->info().id, from}));
  ASSERT_EQ(Committed(new_dir_).size(), 1u);
  EXPECT_EQ(Committed(new_dir_)[0].id.step, 60);
  EXPECT_EQ(ReadFile(dir_ + "/" + from + "/manifest.json"), before);
  EXPECT_EQ(Committed(dir_).size(), 1u);
  EXPECT_TRUE(std::filesystem::is_empty(dir_ + "/leases"));
}

TEST_F(BeginFrom, TheSameCheckpointAgainWhenALifeDiedBeforeItsFirstSave) {
  const std::string from = Kept();
  {
    Step step({.ranks = 2, .dir = new_dir_, .args = kEndless, .env = {{"CAIRN_FROM", dir_}}, .job = 101});
    ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("resumed").empty(); })) << step.Log();
    step.KillAll(SIGKILL);
    ASSERT_TRUE(step.Join());
  }
  {
    Step step({.ranks = 2,
               .dir = dir_,
               .args = kArgs,
               .restart = 1});  // the first run's newest is another one then
    ASSERT_TRUE(step.Join()) << step.Log();
    ASSERT_EQ(Committed(dir_).front().id.step, 60);
  }
  Step again(
      {.ranks = 3, .dir = new_dir_, .args = kArgs, .env = {{"CAIRN_FROM", dir_}}, .job = 101, .restart = 1});
  ASSERT_TRUE(again.Join()) << again.Log();
  EXPECT_THAT(again.rank(0).Line("resumed"), StartsWith(StepOf(from) + " 0"));
  EXPECT_EQ(again.Hash(), UndisturbedHash(kArgs));
}

TEST_F(BeginFrom, ItsOwnNewestOnceTheRunHasSaved) {
  Kept();
  {
    Step step({.ranks = 2, .dir = new_dir_, .args = kArgs, .env = {{"CAIRN_FROM", dir_}}, .job = 101});
    ASSERT_TRUE(step.Join()) << step.Log();
  }
  Step again({.ranks = 3, .dir = new_dir_, .args = kArgs, .env = {{"CAIRN_FROM", dir_}}, .job = 102});
  ASSERT_TRUE(again.Join()) << again.Log();
  EXPECT_THAT(again.rank(0).Line("resumed"), StartsWith("60 1"));
}

TEST_F(BeginFrom, NothingElseThanWhatWasAskedFor) {
  const std::string from = Kept();
  const auto refusal = [&](const std::string& what, int job) {
    Step step({.ranks = 2, .dir = new_dir_, .args = kArgs, .env = {{"CAIRN_FROM", what}}, .job = job});
    EXPECT_TRUE(step.Join()) << step.Log();
    return step.rank(1).Out();
  };
  EXPECT_THAT(refusal(dir_ + "@7", 101), HasSubstr("has no checkpoint of step 7; there are " + StepOf(from)));
  EXPECT_FALSE(std::filesystem::exists(new_dir_ + "/RUN"));
  ASSERT_TRUE(RunDirectory::Open(new_dir_, "main")
                  .ok());  // as a job without the option leaves it that was killed early
  EXPECT_THAT(refusal(dir_, 102), HasSubstr("began without it, and has saved nothing since"));
  std::filesystem::remove_all(new_dir_);
  ASSERT_TRUE(
      RunDirectory::Open(new_dir_, "main", {}, Origin{"cairn", dir_, "", "step-000000000001.e1.0a1b2c3d"})
          .ok());
  EXPECT_THAT(refusal(dir_ + "@" + StepOf(from), 103),
              HasSubstr("the run has begun from " + dir_ + "@step-000000000001"));
}

// What is not in the older one would keep what was read of the damaged one.
TEST_F(SaveRestore, AnItemThatTheOlderCheckpointLacksIsNotLeftAsTheDamagedOneHadIt) {
  SaveThenKill(dir_, 2, 10);
  const std::vector<std::string> args = With(kArgs, {"--replica", "1000"});
  const std::map<std::string, std::string> env = {{"CAIRN_MATCH", "allow-missing"}};
  {
    Step second({.ranks = 2,
                 .dir = dir_,
                 .args = With(With(args, SaveAt(30)), {"--exit-at", "31"}),
                 .env = env,
                 .restart = 1});
    ASSERT_TRUE(second.Join()) << second.Log();
  }
  ASSERT_EQ(Committed(dir_).size(), 2u);
  FlipAByte(dir_ + "/" + Committed(dir_).front().name + "/shard-00002-model-00001-of-00001.safetensors",
            5000);
  {
    Step third({.ranks = 2, .dir = dir_, .args = args, .env = env, .restart = 2});
    ASSERT_TRUE(third.Join()) << third.Log();
    for (int r = 0; r < 2; ++r) EXPECT_EQ(third.rank(r).exit_code(), 4) << third.Log();
    EXPECT_THAT(third.rank(0).Line("restore"), HasSubstr("which holds what was read of a newer checkpoint"));
  }
  Step fourth({.ranks = 2, .dir = dir_, .args = args, .env = env, .restart = 3});
  ASSERT_TRUE(fourth.Join()) << fourth.Log();
  EXPECT_THAT(fourth.rank(0).Line("resumed"), StartsWith("10 0"));
}

TEST_F(SaveRestore, AReshapedArrayStopsAllRanksAndMarksNothing) {
  SaveThenKill(dir_, 2, 10);
  {
    Step other({.ranks = 3, .dir = dir_, .args = {"--n", "5000", "--steps", "60"}, .restart = 1});
    ASSERT_TRUE(other.Join()) << other.Log();
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(other.rank(r).exit_code(), 4);
      EXPECT_THAT(other.rank(r).Out(), HasSubstr("u: saved [10007] F64, registered [5000] F64"));
    }
  }
  Step resumed({.ranks = 2, .dir = dir_, .args = kArgs, .restart = 2});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  EXPECT_EQ(resumed.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, ASecondLiveJobIsRefusedNamingTheHolder) {
  TempDir flag;
  const std::vector<std::string> wait = With(kArgs, {"--wait-file", flag.path() + "/go"});
  Step holder({.ranks = 2, .dir = dir_, .args = wait});
  ASSERT_TRUE(WaitFor([&] { return !holder.rank(1).Line("resumed").empty(); })) << holder.Log();
  Step second({.ranks = 2, .dir = dir_, .args = kArgs, .job = 200});
  ASSERT_TRUE(second.Join()) << second.Log();
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(second.rank(r).exit_code(), 3);
    EXPECT_THAT(second.rank(r).Line("open"), HasSubstr("is in use by job 100"));
  }
  std::ofstream(flag.path() + "/go").put('\n');
  ASSERT_TRUE(holder.Join());
  EXPECT_EQ(holder.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, ANeverResumingLifeStartsOverOnceAndThenResumesItsOwn) {
  {
    Step first({.ranks = 2, .dir = dir_, .args = With(With(kArgs, SaveAt(30)), {"--exit-at", "31"})});
    ASSERT_TRUE(first.Join()) << first.Log();
    ASSERT_EQ(Committed(dir_).size(), 1u) << first.Log();
  }
  {
    Step fresh({.ranks = 2,
                .dir = dir_,
                .args = With(kEndless, SaveAt(10)),
                .env = {{"CAIRN_RESUME", "never"}},
                .job = 300});
    ASSERT_TRUE(WaitFor([&] { return Committed(dir_).size() == 2; })) << fresh.Log();
    EXPECT_THAT(fresh.rank(0).Line("resumed"), StartsWith("0 0"));
  }
  Step again(
      {.ranks = 2, .dir = dir_, .args = kArgs, .env = {{"CAIRN_RESUME", "never"}}, .job = 300, .restart = 1});
  ASSERT_TRUE(again.Join()) << again.Log();
  EXPECT_THAT(again.rank(0).Line("resumed"), StartsWith("10 0"));
  EXPECT_EQ(again.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, ARankThatLeavesDuringASaveHangsNobodyAndCommitsNoMix) {
  Step step({.ranks = 4,
             .dir = dir_,
             .args = With(kArgs, {"--save-at", "20"}),
             .rank_args = {{2, {"--exit-at", "21"}}}});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(2).exit_code(), 0);
  for (const int r : {0, 1, 3}) EXPECT_FALSE(step.rank(r).Line("done").empty()) << step.Log();
  for (const Checkpoint& c : Committed(dir_)) EXPECT_EQ(c.manifest.world_size, 4u);
}

TEST_F(SaveRestore, AKilledRankEndsSavingAndTheOthersGoOn) {
  Step step({.ranks = 4,
             .dir = dir_,
             .args = With(kArgs, {"--hold-at", "20", "--hold-file", tmp_.path() + "/go"})});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(3).Line("resumed").empty(); })) << step.Log();
  step.Kill(3, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return step.rank(0).Err().find("rank 3 is gone") != std::string::npos; }))
      << step.Log();
  // Whoever asks for a save is told at once.
  Process save = step.Start({CAIRN_COMMAND, "save", dir_}, {}, "save");
  ASSERT_TRUE(WaitFor([&] { return waitpid(save.pid, &save.status, WNOHANG) == save.pid; })) << step.Log();
  EXPECT_THAT(save.Err(), HasSubstr("this life makes no more saves"));
  std::ofstream(tmp_.path() + "/go").put('\n');
  ASSERT_TRUE(step.Join()) << step.Log();
  for (const int r : {0, 1, 2}) EXPECT_FALSE(step.rank(r).Line("done").empty()) << step.Log();
  EXPECT_TRUE(Committed(dir_).empty());
}

TEST_F(SaveRestore, SigtermEndsTheOthersAtOnceWhenARankIsGone) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  Step step({.ranks = 3,
             .dir = dir_,
             .args = With(kArgs, {"--hold-at", "20", "--hold-file", tmp_.path() + "/go"})});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(2).Line("resumed").empty(); })) << step.Log();
  step.Kill(2, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return step.rank(0).Err().find("rank 2 is gone") != std::string::npos; }))
      << step.Log();
  step.KillAll(SIGTERM);
  ASSERT_TRUE(step.Join()) << step.Log();
  for (const int r : {0, 1}) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGTERM);
  EXPECT_THAT(step.rank(0).Err(), HasSubstr(": no save"));
  EXPECT_THAT(step.EndHost(), Not(HasSubstr("run the same command again")));  // rank 0 has said it
}

TEST_F(SaveRestore, TheHostProcessSaysHowToResumeWhenNoRankIsLeftThatCould) {
  Step step({.ranks = 2,
             .dir = dir_,
             .args = With(kArgs, {"--hold-at", "20", "--hold-file", tmp_.path() + "/go"})});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("resumed").empty(); })) << step.Log();
  step.KillAll(SIGKILL);
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.EndHost(), HasSubstr("run the same command again with --checkpoint-dir=" + dir_ + "\n"));
}

TEST_F(SaveRestore, RanksThatDriftApartStillAgree) {
  Step step({.ranks = 3,
             .dir = dir_,
             .args = {"--n", "1000", "--steps", "300", "--step-us", "1000", "--save-at", "50", "100", "150"},
             .rank_args = {{1, {"--freeze-at", "40", "--freeze-ms", "5"}},
                           {2, {"--freeze-at", "60", "--freeze-ms", "10"}}}});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("saved step"));
  EXPECT_EQ(Committed(dir_).front().id.step, 300);
}

TEST_F(SaveRestore, UnequalLabelsDropTheSave) {
  Step step(
      {.ranks = 2, .dir = dir_, .args = With(kArgs, SaveAt(20)), .rank_args = {{1, {"--other-label"}}}});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("no save (request)"));
}

TEST_F(SaveRestore, AQuietMemberIsSavedWhileTheOthersAreQuietToo) {
  const std::string go = tmp_.path() + "/go";
  Step step({.ranks = 2,
             .dir = dir_,
             .args = With(kArgs, {"--quiet-at", "20", "--quiet-file", go, "--save-at", "20"})});
  ASSERT_TRUE(WaitFor([&] { return !Committed(dir_).empty(); })) << step.Log();
  EXPECT_EQ(Committed(dir_).back().id.step, 20);
  std::ofstream(go).put('\n');
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, WaitingRightAfterAskingGetsTheSaveOfThisVeryBoundary) {
  Step step({.ranks = 3, .dir = dir_, .args = With(kArgs, SaveAt(20))});
  ASSERT_TRUE(step.Join()) << step.Log();
  for (int r = 0; r < 3; ++r) EXPECT_EQ(step.rank(r).Line("waited"), "0");
  ASSERT_EQ(Committed(dir_).size(), 2u) << step.Log();
  EXPECT_EQ(Committed(dir_)[1].id.step, 20);
}

TEST_F(SaveRestore, TheExtraSignalOfAnyRankMeansSaveNow) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  Step step({.ranks = 3, .dir = dir_, .args = kEndless, .env = {{"CAIRN_SIGNAL", "USR1"}}});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(2).Line("resumed").empty(); })) << step.Log();
  step.Kill(2, SIGUSR1);
  ASSERT_TRUE(WaitFor([&] { return !Committed(dir_).empty(); })) << step.Log();
  EXPECT_EQ(Committed(dir_).front().manifest.trigger, "request");
}

// Nothing in it tells why a SIGTERM came. A Slurm that does not answer is asked again for 20 s.
constexpr char kRunning[] =
    "echo JobId=100 JobState=RUNNING Reason=None Requeue=0 Restarts=0 BatchFlag=0 Partition=batch";

TEST_F(SaveRestore, ATermOfUnknownCauseSavesAndThenEndsEveryRankByTheSignal) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  const FakeScontrol scontrol(kRunning);
  Step step({.ranks = 3, .dir = dir_, .args = kEndless});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(2).Line("resumed").empty(); })) << step.Log();
  step.Kill(1, SIGTERM);
  ASSERT_TRUE(step.Join()) << step.Log();
  for (int r = 0; r < 3; ++r) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGTERM) << step.Log();
  ASSERT_EQ(Committed(dir_).size(), 1u) << step.Log();
  EXPECT_EQ(Committed(dir_).front().manifest.trigger, "preempt");
}

TEST_F(SaveRestore, AProgramThatGoesOnAfterTheFinalSaveAndComesToItsEndHasNotFailed) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  const FakeScontrol scontrol(kRunning);
  Step step({.ranks = 3, .dir = dir_, .args = With(kEndless, {"--own-handler", "before"})});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(2).Line("resumed").empty(); })) << step.Log();
  step.Kill(1, SIGTERM);
  ASSERT_TRUE(step.Join()) << step.Log();
  for (int r = 0; r < 3; ++r) {
    EXPECT_NE(step.rank(r).Line("handler"), "") << step.Log();
    EXPECT_EQ(step.rank(r).Line("done"), "0 ") << step.Log();
  }
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("its last steps are not saved"));
  ASSERT_EQ(Committed(dir_).size(), 1u) << step.Log();
  EXPECT_EQ(Committed(dir_).front().manifest.trigger, "preempt");
}

// Ranks 2 and 3 are on a node of their own: they learn it from rank 2's connection.
TEST_F(SaveRestore, SigtermEndsTheOthersAtOnceWhenTheLeaderIsGone) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  Step step({.ranks = 4,
             .dir = dir_,
             .args = With(kEndless, {"--hold-at", "20", "--hold-file", tmp_.path() + "/go"})});
  for (int r = 0; r < 4; ++r) {
    ASSERT_TRUE(WaitFor([&] { return !step.rank(r).Line("resumed").empty(); })) << step.Log();
  }
  step.Kill(0, SIGSTOP);  // of which nobody knows yet
  step.Kill(2, SIGTERM);
  step.Kill(0, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return step.Reap(), step.rank(2).ended; })) << step.Log();
  ASSERT_TRUE(WaitFor([&] { return step.rank(1).Err().find("rank 0 is gone") != std::string::npos; }))
      << step.Log();
  EXPECT_FALSE(step.Reap());  // nobody has told these to end
  step.Kill(1, SIGTERM);
  step.Kill(3, SIGTERM);
  ASSERT_TRUE(step.Join()) << step.Log();
  for (const int r : {1, 2, 3}) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGTERM) << step.Log();
  EXPECT_THAT(step.EndHost(), HasSubstr("run the same command again with --checkpoint-dir=" + dir_ + "\n"));
}

TEST_F(SaveRestore, UnderCairnRunALostLeaderEndsTheOthersWithoutAnySignal) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  Step step({.ranks = 4, .dir = dir_, .args = kEndless, .env = {{"SLURM_CAIRN_LIFE", "run.0"}}});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(3).Line("resumed").empty(); })) << step.Log();
  step.Kill(0, SIGKILL);
  ASSERT_TRUE(step.Join()) << step.Log();
  for (const int r : {1, 2, 3}) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGTERM) << step.Log();
}

// Whether SIGINT has a handler: in a member it has.
bool IsMember(const Process& process) {
  const std::string status = ReadFile("/proc/" + std::to_string(process.pid) + "/status");
  const size_t caught = status.find("SigCgt:");
  return caught != std::string::npos && (std::stoull(status.substr(caught + 7), nullptr, 16) & 2) != 0;
}

TEST_F(SaveRestore, ASigtermThatComesWhileOtherRanksAreAwaitedIsAnsweredOnceTheyAreThere) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  const FakeScontrol scontrol(kRunning);
  const std::string go = tmp_.path() + "/go";
  const std::string late = "if ((SLURM_PROCID == 1)); then until [[ -e " + go +
                           " ]]; do sleep 0.05; done; fi; exec " CAIRN_TOY " --steps 1000000 --step-us 2000";
  Step step({.ranks = 2, .dir = dir_, .program = {"/bin/bash", "-c", late}});
  ASSERT_TRUE(WaitFor([&] { return IsMember(step.rank(0)); })) << step.Log();
  step.Kill(0, SIGTERM);
  std::ofstream(go).put('\n');
  ASSERT_TRUE(step.Join()) << step.Log();
  for (const int r : {0, 1}) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGTERM) << step.Log();
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("SIGTERM of unknown cause"));
}

TEST_F(SaveRestore, AMemberThatTakesItsSigtermBySigwaitIsSavedAtTheTriggerOfAnother) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  const FakeScontrol scontrol(kRunning);
  Step step({.ranks = 3, .dir = dir_, .args = kEndless, .rank_args = {{1, {"--sigwait"}}}});
  for (int r = 0; r < 3; ++r) {
    ASSERT_TRUE(WaitFor([&] { return !step.rank(r).Line("resumed").empty(); })) << step.Log();
  }
  step.Kill(1, SIGTERM);
  ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("taken").empty(); })) << step.Log();
  step.Kill(2, SIGTERM);
  ASSERT_TRUE(step.Join()) << step.Log();
  ASSERT_EQ(Committed(dir_).size(), 1u) << step.Log();
  EXPECT_EQ(Committed(dir_).front().manifest.world_size, 3u);
  EXPECT_EQ(step.rank(1).exit_code(), 7) << step.Log();  // when it left, it got another one
  for (const int r : {0, 2}) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGTERM) << step.Log();
}

TEST_F(SaveRestore, CtrlCEndsEveryRankByTheSignalAndTheJournalSaysSo) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  Step step({.ranks = 3, .dir = dir_, .args = kEndless});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(2).Line("resumed").empty(); })) << step.Log();
  step.KillAll(SIGINT);
  ASSERT_TRUE(step.Join()) << step.Log();
  for (int r = 0; r < 3; ++r) EXPECT_EQ(step.rank(r).exit_code(), 128 + SIGINT) << step.Log();
  EXPECT_TRUE(Committed(dir_).empty());
  const auto lives = ReadLives(*RunDirectory::OpenExisting(dir_));
  ASSERT_EQ(lives->size(), 1u) << step.Log();
  EXPECT_EQ(lives->front().end, "interrupted");
}

TEST_F(SaveRestore, TheCommandMakesALiveRunSaveAndTag) {
  Step step({.ranks = 2, .dir = dir_, .args = kEndless});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("resumed").empty(); })) << step.Log();
  Process save = step.Start({CAIRN_COMMAND, "save", dir_, "--tag", "before", "--json"}, {}, "save");
  ASSERT_TRUE(WaitFor([&] { return waitpid(save.pid, &save.status, WNOHANG) == save.pid; })) << save.Err();
  EXPECT_EQ(save.status, 0) << save.Err() << step.Log();
  const auto reply = nlohmann::json::parse(save.Out());
  ASSERT_EQ(Committed(dir_).size(), 1u);
  EXPECT_EQ(reply.at("checkpoint"), Committed(dir_).front().name);
  EXPECT_EQ(Committed(dir_).front().manifest.tag, "before");
  Process status = step.Start({CAIRN_COMMAND, "status", dir_, "--json"}, {}, "status");
  ASSERT_TRUE(WaitFor([&] { return waitpid(status.pid, &status.status, WNOHANG) == status.pid; }));
  const auto told = nlohmann::json::parse(status.Out());
  EXPECT_EQ(told.at("world_size"), 2);
  EXPECT_EQ(told.at("last_save").at("checkpoint"), reply.at("checkpoint"));
}

// With this limit a rank's second block would come after weeks.
constexpr const char* kSlowest = "1kB/s";
const std::vector<std::string> kTwoBlocks = {"--n", "1200000", "--steps", "1000000", "--step-us", "2000"};

nlohmann::json Status(Step& step, const std::string& dir) {
  Process status = step.Start({CAIRN_COMMAND, "status", dir, "--json"}, {}, "status");
  EXPECT_TRUE(WaitFor([&] { return waitpid(status.pid, &status.status, WNOHANG) == status.pid; }));
  return nlohmann::json::parse(status.Out(), nullptr, false);
}

TEST_F(SaveRestore, ALimitedSaveTellsHowFarItIs) {
  Step step({.ranks = 1,
             .dir = dir_,
             .args = With(kTwoBlocks, {"--save-at", "3"}),
             .env = {{"CAIRN_DRAIN_LIMIT", kSlowest}, {"CAIRN_WRITER", "pwrite"}}});
  nlohmann::json drain;
  ASSERT_TRUE(WaitFor([&] {
    const auto status = Status(step, dir_);
    if (status.is_object() && status.contains("drain")) drain = status["drain"];
    return drain.is_object() && drain.at("written") > 0;
  })) << step.Log();
  EXPECT_EQ(drain.at("written"), 4 << 20);
  EXPECT_GT(drain.at("bytes"), 1200000 * 8);
  EXPECT_GT(drain.at("seconds_left"), 0);
  EXPECT_EQ(drain.at("writer"), "pwrite");
  EXPECT_EQ(drain.at("limit"), 1000);
  EXPECT_TRUE(Committed(dir_).empty());
}

TEST_F(SaveRestore, TheSaveBeforeTheEndKnowsNoLimit) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "signals come by way of the shim, which a sanitizer's runtime does not let be first";
#endif
  const FakeScontrol scontrol(kRunning);
  Step step({.ranks = 1,
             .dir = dir_,
             .args = With(kTwoBlocks, {"--save-at", "3"}),
             .env = {{"CAIRN_DRAIN_LIMIT", kSlowest}}});
  ASSERT_TRUE(WaitFor([&] { return Status(step, dir_).value("save", "") == "draining"; })) << step.Log();
  step.Kill(0, SIGTERM);  // of unknown cause: the drain under way is finished, then a last save made
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(0).exit_code(), 128 + SIGTERM) << step.Log();
  EXPECT_EQ(Committed(dir_).size(), 2u) << step.Log();
}

TEST_F(SaveRestore, AForkedChildIsInertAndDisturbsNobody) {
  Step step({.ranks = 2, .dir = dir_, .args = With(With(kArgs, SaveAt(20)), {"--fork-at", "10"})});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(0).Line("child"), "0");
  EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs)) << step.Log();
  EXPECT_EQ(Committed(dir_).size(), 2u) << step.Log();
}

TEST_F(SaveRestore, AProgramThatLinksNothingFindsCairnByName) {
#ifndef CAIRN_PRELOAD
  GTEST_SKIP() << "the shim's symbols need the shim";
#endif
  // A program without Cairn's library: the shim must bring it.
  const std::string program =
      "import ctypes\n"
      "cairn = ctypes.CDLL(None)\n"
      "session = ctypes.c_void_p()\n"
      "assert cairn.cairn_open(None, ctypes.byref(session)) == 0\n"
      "state = (ctypes.c_char * 4)(*b'abcd')\n"
      "assert cairn.cairn_add_blob(session, b'state', state, 4, 0) == 0\n"
      "assert cairn.cairn_restore(session, None) == 0\n"
      "print('before', state.raw.decode(), flush=True)\n"
      "for step in range(3): assert cairn.cairn_step(session, ctypes.c_int64(step)) == 0\n"
      "state.raw = b'efgh'\n"
      "assert cairn.cairn_finalize(ctypes.byref(session)) == 0\n";
  for (const std::string before : {"abcd", "efgh"}) {
    Step step({.ranks = 1,
               .dir = dir_,
               .env = {{"SLURM_CAIRN_LIB", CAIRN_LIBRARY}},
               .restart = before == "abcd" ? 0 : 1,
               .program = {"/usr/bin/env", "python3", "-c", program}});
    ASSERT_TRUE(step.Join()) << step.Log();
    EXPECT_EQ(step.rank(0).exit_code(), 0) << step.Log();
    EXPECT_EQ(step.rank(0).Line("before"), before) << step.Log();
  }
}

TEST_F(SaveRestore, ADirectoryThatComesBackWithOlderCheckpointsIsNotForked) {
  {
    Step first({.ranks = 2, .dir = dir_, .args = With(With(kArgs, SaveAt(10)), {"--exit-at", "11"})});
    ASSERT_TRUE(first.Join()) << first.Log();
    ASSERT_EQ(Committed(dir_).size(), 1u) << first.Log();
  }
  const std::string mount = tmp_.path() + "/mount", go = tmp_.path() + "/go";
  std::ofstream(mount).put('\n');  // in the way of the directory: the mount is missing
  {
    Step step({.ranks = 2,
               .dir = mount + "/run",
               .args = With(kArgs, {"--wait-file", go, "--save-at", "20"}),
               .job = 200});
    ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("resumed").empty(); })) << step.Log();
    EXPECT_THAT(step.rank(0).Line("resumed"), StartsWith("0 0"));
    EXPECT_THAT(step.rank(0).Err(), HasSubstr("NOT PROTECTED for now"));
    std::filesystem::remove(mount);
    std::filesystem::create_directory(mount);
    std::filesystem::rename(dir_, mount + "/run");
    std::ofstream(go).put('\n');
    ASSERT_TRUE(step.Join(std::chrono::seconds(100))) << step.Log();
    EXPECT_THAT(step.rank(0).Err(), HasSubstr("which this job did not begin from"));
    EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs));
  }
  ASSERT_EQ(Committed(mount + "/run").size(), 1u);
  Step resumed({.ranks = 3, .dir = mount + "/run", .args = kArgs, .job = 200, .restart = 1});
  ASSERT_TRUE(resumed.Join(std::chrono::seconds(100))) << resumed.Log();
  EXPECT_THAT(resumed.rank(0).Line("resumed"),
              StartsWith(std::to_string(Committed(mount + "/run").back().id.step)));
}

TEST_F(SaveRestore, ARunThatIsKnownToHaveSavedNeverStartsFresh) {
  SaveThenKill(dir_, 2, 10);
  std::filesystem::rename(dir_, dir_ + ".elsewhere");
  const std::map<std::string, std::string> state = {{"XDG_STATE_HOME", tmp_.path()}};
  {
    Step again({.ranks = 2, .dir = dir_, .args = kArgs, .env = state, .restart = 1});
    ASSERT_TRUE(again.Join()) << again.Log();
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(again.rank(r).exit_code(), 4);
      EXPECT_THAT(again.rank(r).Line("restore"), HasSubstr("is a mount missing?"));
    }
  }
  std::filesystem::remove_all(dir_);
  std::filesystem::rename(dir_ + ".elsewhere", dir_);
  Step back({.ranks = 2, .dir = dir_, .args = kArgs, .env = state, .restart = 2});
  ASSERT_TRUE(back.Join()) << back.Log();
  EXPECT_EQ(back.Hash(), UndisturbedHash(kArgs));
}

TEST_F(SaveRestore, AnUnwritableDirectoryCostsTheSavesAndNotTheJob) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere; the Slurm tests cover it as a user";
  std::filesystem::create_directory(dir_);
  chmod(dir_.c_str(), 0500);
  Step step({.ranks = 2, .dir = dir_, .args = kArgs});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs));
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("NOT PROTECTED for now"));
}

TEST_F(SaveRestore, AParentThatCannotBeWrittenCostsTheSavesAndNotTheJob) {
  std::filesystem::create_directories(dir_ + "/PARENT-00000001");
  Step step({.ranks = 2, .dir = dir_, .args = kArgs});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs));
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("NOT PROTECTED for now"));
}

TEST_F(SaveRestore, ALateRankOfAnEarlierLifeIsRefusedAndTheSaveGoesOn) {
  Step step({.ranks = 2,
             .dir = dir_,
             .args = With(kArgs, {"--wait-file", tmp_.path() + "/go", "--save-at", "10"})});
  ASSERT_TRUE(WaitFor([&] { return !step.rank(1).Line("resumed").empty(); })) << step.Log();
  std::map<std::string, std::string> env = step.env();
  env["SLURM_CAIRN_KEY"] = "100.0.7";
  env["SLURM_PROCID"] = "1";
  env["CAIRN_REQUIRE"] = "yes";
  env["SLURM_CAIRN_REQUIRE"] = "yes";
  Process late = step.Start({CAIRN_TOY, "--n", "10007"}, env, "late");
  int status = 0;
  ASSERT_TRUE(WaitFor([&] { return waitpid(late.pid, &status, WNOHANG) == late.pid; })) << late.Err();
  EXPECT_EQ(WEXITSTATUS(status), 3) << late.Out();
  std::ofstream(tmp_.path() + "/go").put('\n');
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_GE(Committed(dir_).size(), 1u);
  EXPECT_EQ(step.Hash(), UndisturbedHash(kArgs));
}

}  // namespace
}  // namespace cairn::testing
