#include "runtime/catalog/epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = BeatWatch::State;

class EpochsOfARun : public OnBothTiers {};
INSTANTIATE_TEST_SUITE_P(, EpochsOfARun, ::testing::Bool(), TierName);

TEST_P(EpochsOfARun, CountsUpAndIsReadBack) {
  EXPECT_FALSE(NewestEpoch(run.dir())->has_value());
  EXPECT_EQ(*ClaimEpoch(run.dir(), 0, HolderOf("12", 3)), 1u);
  Identity self = HolderOf("13");
  self.claim = "00112233445566aa";
  EXPECT_EQ(*ClaimEpoch(run.dir(), 1, self), 2u);
  const auto newest = NewestEpoch(run.dir());
  ASSERT_TRUE(newest.ok() && *newest);
  EXPECT_EQ((*newest)->epoch, 2u);
  EXPECT_EQ((*newest)->holder, self);
}

TEST_P(EpochsOfARun, OfANumberThatIsTakenNamesTheHolder) {
  ASSERT_TRUE(ClaimEpoch(run.dir(), 0, HolderOf("12", 3)).ok());
  const Status status = ClaimEpoch(run.dir(), 0, HolderOf("13")).status();
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_THAT(status.message(),
              HasSubstr("epoch 1 by job 12, step 0 of cluster c1, restart 3, on n1 (pid 4711)"));
}

TEST(ClaimEpoch, GivesEachNumberToOneOfManyProcesses) {
  TestRun run;
  constexpr int kProcesses = 4;
  constexpr uint32_t kRounds = 10;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      int won = 0;
      for (uint32_t newest = 0; newest < kRounds; ++newest) {
        const auto epoch = ClaimEpoch(run.dir(), newest, HolderOf(std::to_string(i)));
        if (epoch.ok()) ++won;
        if (!epoch.ok() && epoch.status().code() != Code::kBusy) _exit(255);
      }
      _exit(won);
    }
    children.push_back(child);
  }
  int won = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_NE(WEXITSTATUS(status), 255);
    won += WEXITSTATUS(status);
  }
  EXPECT_EQ(won, static_cast<int>(kRounds));
  EXPECT_EQ((*NewestEpoch(run.dir()))->epoch, kRounds);
}

TEST_P(EpochsOfARun, ThatCannotBeReadIsNotPassedOver) {
  run.Claim();
  run.Claim();
  run.FlipByte("EPOCH-00000002", 40);
  EXPECT_EQ(NewestEpoch(run.dir()).status().code(), Code::kDamage);
}

TEST(JudgeHolder, FollowsItsTable) {
  const Identity other = HolderOf("12", 0), self = HolderOf("13", 0);
  const auto judge = [&](State beat, HolderInSlurm slurm) { return JudgeHolder(other, self, beat, slurm); };
  EXPECT_EQ(judge(State::kWaiting, HolderInSlurm::kUnknown), Verdict::kWait);
  EXPECT_EQ(judge(State::kMoving, HolderInSlurm::kUnknown), Verdict::kHeld);
  EXPECT_EQ(judge(State::kStill, HolderInSlurm::kUnknown), Verdict::kFree);
  EXPECT_EQ(judge(State::kLeft, HolderInSlurm::kUnknown), Verdict::kFree);
  EXPECT_EQ(judge(State::kWaiting, HolderInSlurm::kRunning), Verdict::kHeld);
  EXPECT_EQ(judge(State::kStill, HolderInSlurm::kRunning), Verdict::kHeld);  // suspended
  EXPECT_EQ(judge(State::kLeft, HolderInSlurm::kRunning), Verdict::kFree);
  EXPECT_EQ(judge(State::kWaiting, HolderInSlurm::kGone), Verdict::kFree);
}

TEST(JudgeHolder, KnowsThatAnEarlierLifeOfTheOwnJobIsDead) {
  const auto judge = [](const Identity& holder, const Identity& self) {
    return JudgeHolder(holder, self, State::kMoving, HolderInSlurm::kUnknown);
  };
  EXPECT_EQ(judge(HolderOf("12", 0), HolderOf("12", 1)), Verdict::kFree);
  EXPECT_EQ(judge(HolderOf("12", 1), HolderOf("12", 1)),
            Verdict::kHeld);  // another live step of the same life
  EXPECT_EQ(judge(HolderOf("12", 2), HolderOf("12", 1)), Verdict::kHeld);
  EXPECT_EQ(judge(HolderOf("12", 0), HolderOf("13", 1)), Verdict::kHeld);
  EXPECT_EQ(judge(HolderOf("", 0), HolderOf("", 1)), Verdict::kHeld);  // outside Slurm nothing is known
  Identity elsewhere = HolderOf("12", 0);
  elsewhere.cluster = "c2";
  EXPECT_EQ(judge(elsewhere, HolderOf("12", 1)), Verdict::kHeld);
}

TEST(JudgeHolder, KnowsItsOwnClaimOfATryThatFailedLater) {
  Identity self = HolderOf("12"), twin = HolderOf("12");
  self.claim = "00112233445566aa";
  twin.claim = "00112233445566ab";
  EXPECT_EQ(JudgeHolder(self, self, State::kWaiting, HolderInSlurm::kRunning), Verdict::kFree);
  EXPECT_EQ(JudgeHolder(twin, self, State::kWaiting, HolderInSlurm::kRunning), Verdict::kHeld);
  EXPECT_EQ(JudgeHolder(HolderOf("12"), HolderOf("12"), State::kWaiting, HolderInSlurm::kUnknown),
            Verdict::kWait);
}

TEST_P(EpochsOfARun, FencesAnEarlierEpochAndNamesTheNewer) {
  const uint32_t old_epoch = run.Claim();
  EXPECT_TRUE(StillNewest(run.dir(), old_epoch).ok());
  ASSERT_TRUE(ClaimEpoch(run.dir(), old_epoch, HolderOf("77")).ok());
  const Status status = StillNewest(run.dir(), old_epoch);
  EXPECT_EQ(status.code(), Code::kFenced);
  EXPECT_THAT(status.message(), HasSubstr("job 77"));
  EXPECT_TRUE(StillNewest(run.dir(), 2).ok());
}

TEST_P(EpochsOfARun, NoticesThatTheDirectoryWasRemoved) {
  const uint32_t epoch = run.Claim();
  ASSERT_TRUE(RemoveFile(run.Path("EPOCH-00000001")).ok());
  EXPECT_EQ(StillNewest(run.dir(), epoch).code(), Code::kNotFound);
  ASSERT_TRUE(RemoveTree(run.dir().path()).ok());
  EXPECT_EQ(StillNewest(run.dir(), epoch).code(), Code::kNotFound);
}

constexpr char kClaim[] = "00112233445566aa";

TEST(TakeOver, RemovesOlderAttemptsAndSparesCheckpoints) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string checkpoint = run.Save(first, 10);
  const Attempt attempt = run.Write(first, 20);
  const uint32_t second = run.Claim();
  const Attempt own = run.Write(second, 30);
  const auto taken = TakeOver(run.dir(), second, kClaim);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->dead, ElementsAre("dead-" + attempt.name.ToString()));
  EXPECT_THAT(taken->committed, IsEmpty());
  EXPECT_TRUE(run.Has(checkpoint));
  EXPECT_TRUE(run.Has(own.name.ToString()));
  EXPECT_FALSE(run.Has(attempt.name.ToString()));
  EXPECT_FALSE(run.Has(names::Dead(attempt.name.ToString())));
}

TEST(TakeOver, MakesAStaleWritersCommitFail) {
  TestRun run;
  const uint32_t first = run.Claim();
  const Attempt attempt = run.Write(first, 10);
  const uint32_t second = run.Claim();
  ASSERT_TRUE(TakeOver(run.dir(), second, kClaim).ok());
  EXPECT_EQ(run.Commit(attempt).status().code(), Code::kFenced);
  // Even past its fence the writer cannot make a manifest, since its path is gone.
  EXPECT_EQ(PublishFile(attempt.path + "/manifest.json", "{}").code(), Code::kNotFound);
}

// The writer's rename fell between the new life's look and its renaming of the folder.
TEST(TakeOver, GivesBackTheNameOfAnAttemptWhoseManifestAppearedMeanwhile) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string name = run.Save(first, 10);
  ASSERT_EQ(rename(run.Path(name).c_str(), run.Path(names::Dead(name)).c_str()), 0);
  const uint32_t second = run.Claim();
  const auto taken = TakeOver(run.dir(), second, kClaim);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->committed, ElementsAre(name));
  EXPECT_THAT(run.CandidateNames(), ElementsAre(name));
  EXPECT_TRUE(LoadCheckpoint(run.dir(), name).ok());
}

TEST(TakeOver, FinishesWhatAnEarlierTakeoverBegan) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string name = run.Write(first, 10).name.ToString();
  ASSERT_EQ(rename(run.Path(name).c_str(), run.Path(names::Dead(name)).c_str()), 0);
  const uint32_t second = run.Claim();
  EXPECT_THAT(TakeOver(run.dir(), second, kClaim)->dead, ElementsAre(names::Dead(name)));
  EXPECT_FALSE(run.Has(names::Dead(name)));
  EXPECT_THAT(TakeOver(run.dir(), second, kClaim)->dead, IsEmpty());
}

TEST(TakeOver, EndsARemovalThatWasCutShort) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10), b = run.Save(first, 20);
  const std::string removed = names::Removed(first, a);
  ASSERT_EQ(rename(run.Path(a).c_str(), run.Path(removed).c_str()), 0);
  run.Claim();  // a life that was killed before it came to anything
  const auto taken = TakeOver(run.dir(), run.Claim(), kClaim);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->returned, IsEmpty());
  EXPECT_FALSE(run.Has(removed));
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
}

// The life of epoch 1 was paused between its fence and the rename, and killed before it saw that epoch 2 had gone on from there.
TEST(TakeOver, GivesBackTheNameOfACheckpointThatALaterLifeMayHaveGoneOnFrom) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10);
  const uint32_t second = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), second, a).ok());
  ASSERT_EQ(rename(run.Path(a).c_str(), run.Path(names::Removed(first, a)).c_str()), 0);
  const auto taken = TakeOver(run.dir(), run.Claim(), kClaim);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->returned, ElementsAre(a));
  EXPECT_TRUE(LoadCheckpoint(run.dir(), a).ok());
}

TEST(TakeOver, LeavesAloneWhatItsOwnLifeIsRemoving) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string removed = names::Removed(first, run.Save(first, 10));
  ASSERT_TRUE(MakeDirectories(run.Path(removed)).ok());
  ASSERT_TRUE(TakeOver(run.dir(), first, kClaim).ok());
  EXPECT_TRUE(run.Has(removed));
}

TEST(TakeOver, RemovesWhatElseOtherLivesLeftBehindAndNothingOfItsOwn) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  for (const char* name : {".staging-00112233445566aa-0", ".staging-00112233445566aa-3",
                           ".staging-00112233445566ab-3", ".staging-ffffffffffffffff-0"}) {
    ASSERT_TRUE(MakeDirectories(run.Path(name)).ok());
    ASSERT_TRUE(PublishFile(run.Path(name) + "/shard", "half").ok());
  }
  for (const char* name : {".tmp-CURRENT-00000000", ".tmp-EPOCH-00000002-12345678", ".mine"})
    ASSERT_TRUE(PublishFile(run.Path(name), "half").ok());
  ASSERT_TRUE(TakeOver(run.dir(), epoch, kClaim).ok());
  const auto names = ListDirectory(run.dir().path());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre(".mine", ".staging-00112233445566aa-0", ".staging-00112233445566aa-3",
                                  "EPOCH-00000001", "RUN"));
}

TEST_P(EpochsOfARun, IsNotForAnEpochThatIsFencedItself) {
  const uint32_t first = run.Claim();
  run.Claim();
  EXPECT_EQ(TakeOver(run.dir(), first, kClaim).status().code(), Code::kFenced);
}

TEST_P(EpochsOfARun, IsSaidOncePerEpoch) {
  const std::string checkpoint = "step-000000000010.e1.00000001";
  EXPECT_EQ(*ReadParent(run.dir(), 2), std::nullopt);
  ASSERT_TRUE(PublishParent(run.dir(), 2, checkpoint).ok());
  EXPECT_EQ(*ReadParent(run.dir(), 2), checkpoint);
  EXPECT_TRUE(PublishParent(run.dir(), 2, checkpoint).ok());
  EXPECT_EQ(PublishParent(run.dir(), 2, "").code(), Code::kExists);
  ASSERT_TRUE(PublishParent(run.dir(), 3, "").ok());
  EXPECT_EQ(*ReadParent(run.dir(), 3), "");
}

}  // namespace
}  // namespace cairn
