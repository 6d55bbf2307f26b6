#include "runtime/catalog/lives.h"

#include <gmock/gmock.h>

#include <fstream>

#include "runtime/formats/names.h"
#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint32_t> Epochs(const std::vector<LifeStory>& lives) {
  std::vector<uint32_t> out;
  for (const LifeStory& life : lives) out.push_back(life.epoch);
  return out;
}

// A run whose first life has committed `checkpoint`.
class StrikesTest : public ::testing::Test {
 protected:
  StrikesTest() {
    run.Claim();
    Restore(1, "");
    checkpoint = run.Save(1, 100);
  }
  void Restore(uint32_t epoch, const std::string& from) {
    ASSERT_TRUE(PublishParent(run.dir(), epoch, from).ok());
  }
  // A life that goes on from the checkpoint; `ending`: what its journal says besides, "" = nothing.
  uint32_t Live(const std::string& ending = "") {
    const uint32_t epoch = run.Claim();
    Restore(epoch, checkpoint);
    Note(epoch, R"("event":"life","time":"t","job":"12","step":"0","restart":0,"node":"n1","world_size":4)");
    if (!ending.empty()) Note(epoch, ending);
    return epoch;
  }
  void Note(uint32_t epoch, const std::string& fields) {
    ASSERT_TRUE(run.dir().Journal(epoch, "{\"epoch\":" + std::to_string(epoch) + "," + fields + "}").ok());
  }
  std::vector<LifeStory> StrikesBefore(uint32_t epoch) {
    const auto strikes = Strikes(run.dir(), run.List(), checkpoint, epoch);
    EXPECT_TRUE(strikes.ok()) << strikes.status().message();
    return strikes.ok() ? *strikes : std::vector<LifeStory>();
  }

  TestRun run;
  std::string checkpoint;
};

TEST_F(StrikesTest, LivesThatWereKilledOrLostARankCountAgainstTheCheckpointTheyWentOnFrom) {
  Live();
  Live(R"("event":"gone","rank":2,"why":"connection reset")");
  const auto strikes = StrikesBefore(4);
  EXPECT_THAT(Epochs(strikes), ElementsAre(2, 3));
  EXPECT_EQ(strikes[1].why, "rank 2: connection reset");
  EXPECT_EQ(strikes[1].job, "12");
}

TEST_F(StrikesTest, ALineThatWasCutShortSwallowsNoOther) {
  const uint32_t epoch = Live();
  std::ofstream(run.dir().PathOf(names::kJournal), std::ios::app) << R"({"epoch":2,"event":"prog)";
  Note(epoch, R"("event":"ending","cause":"interrupted")");
  EXPECT_THAT(StrikesBefore(3), IsEmpty());
}

TEST_F(StrikesTest, TheLifeThatAsksDoesNotCountItself) {
  Live();
  EXPECT_THAT(StrikesBefore(2), IsEmpty());
}

// Asked without a claim, all lives so far count, and it takes no longer than there are lives.
TEST_F(StrikesTest, ALifeThatOwnsNoEpochCountsAllOthers) {
  Live();
  Live();
  EXPECT_THAT(Epochs(StrikesBefore(UINT32_MAX)), ElementsAre(2, 3));
}

TEST_F(StrikesTest, LivesThatWereToldToEndDoNotCount) {
  for (const char* cause : {"preempted", "time limit", "requeued", "cancelled", "interrupted", "unknown"})
    Live(R"("event":"ending","why":"","count":100,"cause":")" + std::string(cause) + "\"");
  EXPECT_THAT(StrikesBefore(8), IsEmpty());
}

TEST_F(StrikesTest, ALifeThatMadeRoomForAResizeDoesNotCountAndTellsWhatFor) {
  Live(R"("event":"ending","cause":"resize","why":"to 2","count":100,"nodes":"2")");
  EXPECT_THAT(StrikesBefore(3), IsEmpty());
  const auto lives = ReadLives(run.dir());
  ASSERT_TRUE(lives.ok());
  EXPECT_EQ(lives->back().end, "resize");
  EXPECT_EQ(lives->back().nodes, "2");
}

// srun sends the others a SIGTERM when a rank dies, and they may notice that first.
TEST_F(StrikesTest, ARankThatIsLostAfterASignalOfUnknownCauseWasLostBeforeIt) {
  const uint32_t epoch = Live(R"("event":"ending","cause":"unknown","why":"","count":100)");
  Note(epoch, R"("event":"gone","rank":1,"why":"killed","count":102)");
  const auto strikes = StrikesBefore(3);
  ASSERT_THAT(Epochs(strikes), ElementsAre(2));
  EXPECT_EQ(strikes[0].end, "rank lost");
  EXPECT_EQ(strikes[0].end_step, 102);
}

TEST_F(StrikesTest, LivesThatCameToTheirEndDoNotCount) {
  Live(R"("event":"finished","checkpoint":"x")");
  Live(R"("event":"closed")");
  EXPECT_THAT(StrikesBefore(4), IsEmpty());
}

TEST_F(StrikesTest, ARankThatIsLostBeforeAllCameToFinalizeIsAStrikeWhateverIsClosedAfterwards) {
  const uint32_t epoch = Live(R"("event":"gone","rank":1,"why":"left without cairn_finalize")");
  Note(epoch, R"("event":"closed")");
  EXPECT_THAT(Epochs(StrikesBefore(3)), ElementsAre(2));
}

TEST_F(StrikesTest, ALifeThatCommittedDoesNotCount) {
  const uint32_t epoch = Live();
  run.Save(epoch, 120, checkpoint);
  EXPECT_THAT(StrikesBefore(3), IsEmpty());
}

TEST_F(StrikesTest, LivesThatNeverCameToTheEndOfTheirRestoreOrWentOnFromAnotherDoNotCount) {
  run.Claim();
  Restore(run.Claim(), "");
  EXPECT_THAT(StrikesBefore(4), IsEmpty());
}

TEST_F(StrikesTest, WithoutAJournalEveryLifeWithoutACommitCounts) {
  Live(R"("event":"ending","why":"","count":100,"cause":"preempted")");
  std::filesystem::remove(run.Path("journal.jsonl"));
  EXPECT_THAT(Epochs(StrikesBefore(3)), ElementsAre(2));
}

}  // namespace
}  // namespace cairn
