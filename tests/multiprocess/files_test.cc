// Ranks of a node that write files together (CAIRN_FILES): in whole sessions of real processes, two ranks a node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/verify.h"
#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Args = std::vector<std::string>;

class Files : public ::testing::Test {
 protected:
  Files() { fs::create_directory(local_); }

  // Saves at steps 20, 30 and 40, each durable before the next, then the end at step 60 without another.
  std::string Save(const std::string& files, const Args& args, std::map<std::string, std::string> env = {}) {
    env.emplace("CAIRN_LOCAL", local_);
    env.emplace("CAIRN_FILES", files);
    env.emplace("CAIRN_KEEP", "last=9");
    Args all = args;
    for (const char* arg : {"--steps", "60", "--step-us", "1000", "--save-at", "20", "30", "40", "--wait-at",
                            "20", "30", "40", "--exit-at", "41"})
      all.push_back(arg);
    Step step({.ranks = 4, .dir = dir_, .args = all, .env = env});
    EXPECT_TRUE(step.Join()) << step.Log();
    return step.rank(0).Err();
  }
  std::vector<Checkpoint> Committed() const {
    const auto run = RunDirectory::OpenExisting(dir_);
    const auto listing = ListCheckpoints(*run);
    return listing->checkpoints;
  }
  // Every checkpoint is whole, and has so many files of arrays.
  void Check(size_t shards) const {
    const auto run = RunDirectory::OpenExisting(dir_);
    ASSERT_TRUE(run.ok());
    const std::vector<Checkpoint> all = Committed();
    ASSERT_EQ(all.size(), 3u);
    for (const Checkpoint& c : all) {
      EXPECT_EQ(c.manifest.shards.size(), shards) << c.name;
      EXPECT_EQ(c.manifest.world_size, 4u);
      EXPECT_EQ(c.manifest.writers, shards < 4 ? shards : 0);
      const auto verified = VerifyCheckpoint(*run, c.name);
      EXPECT_TRUE(verified.ok() && verified->faults.empty()) << c.name;
    }
  }
  std::string Resumed(int ranks, Args args, int64_t from) const {
    for (const char* arg : {"--steps", "60", "--step-us", "1000"}) args.push_back(arg);
    Step step({.ranks = ranks,
               .dir = dir_,
               .args = args,
               .env = {{"CAIRN_LOCAL", local_}, {"CAIRN_FILES", "per-node"}},
               .restart = 1});
    EXPECT_TRUE(step.Join()) << step.Log();
    EXPECT_THAT(step.rank(0).Line("resumed"), StartsWith(std::to_string(from) + " 0")) << step.Log();
    return step.Hash();
  }
  static std::string Expected(Args args) {
    TempDir tmp;
    for (const char* arg : {"--steps", "60", "--step-us", "0"}) args.push_back(arg);
    Step step({.ranks = 1, .dir = tmp.path() + "/run", .args = args, .env = {{"CAIRN_ON", "preempt"}}});
    EXPECT_TRUE(step.Join()) << step.Log();
    return step.Hash();
  }

  TempDir tmp_;
  const std::string dir_ = tmp_.path() + "/run", local_ = tmp_.path() + "/local";
};

const Args kRows = {"--n", "10007"};
const Args kFlat = {"--n", "10003", "--columns", "7", "--flat"};

TEST_F(Files, OfANodeAreOneAndAnyNumberOfRanksResumesFromThem) {
  const std::string said = Save("per-node", kRows);
  EXPECT_THAT(said, HasSubstr("each save has 2 files of arrays"));
  Check(2);
  EXPECT_EQ(Resumed(3, kRows, 40), Expected(kRows));
}

TEST_F(Files, OfRangesThatEndInsideARowAreOneWhereTheyMakeUpABox) {
  // [1429, 7]: 2501, 2501, 2501 and 2500 elements: a node's two ranges are rows, and parts of a row at both ends.
  Save("per-node", kFlat);
  for (const Checkpoint& c : Committed()) EXPECT_LT(c.manifest.shards.size(), 8u);
  EXPECT_EQ(Resumed(5, kFlat, 40), Expected(kFlat));
}

TEST_F(Files, AreAsManyAsAskedFor) {
  EXPECT_THAT(Save("3", kRows), HasSubstr("each save has 3 files of arrays"));
  Check(3);
  EXPECT_EQ(Resumed(4, kRows, 40), Expected(kRows));
}

TEST_F(Files, AreTheRanksOwnWhereNoMemoryIsShared) {
  EXPECT_THAT(
      Save("per-node", kRows, {{"CAIRN_LOCAL", "none"}}),
      HasSubstr("each rank writes files of its own, since ranks of a node cannot fill them together"));
  Check(4);
}

TEST_F(Files, AreTheRanksOwnWithCopiesOnPartners) {
  EXPECT_THAT(Save("per-node", kRows, {{"CAIRN_PARTNER", "yes"}}),
              HasSubstr("since CAIRN_PARTNER copies them"));
  Check(4);
}

}  // namespace
}  // namespace cairn::testing
