#include "runtime/agreement/leader.h"

#include <gmock/gmock.h>

#include "tests/runtime/agreement/actions.h"

namespace cairn::agreement {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three members; a step takes 10 ms. Each Reach… brings a fresh leader's first save (id 1) to a state, the last answer at 25 ms.
class LeaderTest : public ::testing::Test {
 protected:
  LeaderActions Ask(Trigger reason, int64_t ms = 0, Nanoseconds left = kNoLimit, Rank from = 0) {
    return leader.OnMessage(from, Request{reason, left, ""}, At(ms));
  }
  // Every member sends a message of its own; what the last one causes is returned.
  template <typename F>
  LeaderActions FromAll(int64_t ms, F message) {
    LeaderActions last;
    for (Rank rank = 0; rank < 3; ++rank) last = leader.OnMessage(rank, message(rank), At(ms));
    return last;
  }
  LeaderActions CountAll(SaveId id, int64_t ms, int64_t first = 100) {
    return FromAll(ms, [&](Rank r) { return Count{id, first + r, milliseconds(10), Mode::kRunning}; });
  }
  LeaderActions ReachArming() {
    Ask(kTriggerRequest);
    return CountAll(1, 25);  // counts 100, 101, 102; round trip 25 ms = 3 steps: T = 102 + 4
  }
  LeaderActions ReachStaging() {
    ReachArming();
    return FromAll(25, [](Rank) { return Ack{1}; });
  }
  LeaderActions ReachPreparing() {
    ReachStaging();
    return FromAll(25, [](Rank) { return Staged{1, 106, 7, false}; });
  }
  LeaderActions ReachDraining() {
    ReachPreparing();
    return leader.OnPrepared(1, std::string("attempt-1"), At(25));
  }
  LeaderActions ReachCommitting() {
    ReachDraining();
    return FromAll(25, [](Rank r) { return Record{1, "record " + std::to_string(r)}; });
  }
  void FinalizeAll(int64_t count = 110) {
    FromAll(30, [&](Rank) { return Finalized{count}; });
  }

  Leader leader{{.members = 3, .save_timeout = seconds(60)}};
};

TEST_F(LeaderTest, ASaveThatEndsNamesTheRequestsThatItAnswers) {
  ReachStaging();             // request 1
  Ask(kTriggerRequest, 26);   // 2 follows
  Ask(kTriggerInterval, 26);  // 3 is served by what is under way
  EXPECT_EQ(leader.requests(), 3u);
  const auto end = Of<SaveEnded>(leader.OnMessage(1, Failed{1, "no room"}, At(27)));
  ASSERT_EQ(end.size(), 1u);
  EXPECT_THAT(end[0].requests, ElementsAre(1, 3));
}

TEST_F(LeaderTest, ASaveRunsFromRequestToCommit) {
  EXPECT_THAT(Told<Poll>(Ask(kTriggerRequest)), ElementsAre(Poll{1}));
  EXPECT_THAT(Told<ArmAt>(CountAll(1, 25)), ElementsAre(ArmAt{1, 106, milliseconds(60000 - 25)}));
  EXPECT_THAT(Told<Go>(FromAll(26, [](Rank) { return Ack{1}; })), ElementsAre(Go{1}));

  const auto prepare = Of<Prepare>(FromAll(30, [](Rank) { return Staged{1, 106, 7, false}; }));
  ASSERT_EQ(prepare.size(), 1u);
  EXPECT_EQ(prepare[0].id, 1u);
  EXPECT_EQ(prepare[0].count, 106);
  EXPECT_THAT(Told<Drain>(leader.OnPrepared(1, std::string("a1"), At(31))), ElementsAre(Drain{1, "a1"}));

  const auto commit = Of<Commit>(FromAll(40, [](Rank r) {
    return Record{1, std::string(1, static_cast<char>('a' + r))};
  }));
  ASSERT_EQ(commit.size(), 1u);
  EXPECT_EQ(commit[0].count, 106);
  EXPECT_EQ(commit[0].label, 7);
  EXPECT_EQ(commit[0].reason, kTriggerRequest);
  EXPECT_THAT(commit[0].records, ElementsAre("a", "b", "c"));

  const auto end = leader.OnCommitted(1, OkStatus(), At(50));
  EXPECT_THAT(Told<Committed>(end), ElementsAre(Committed{1}));
  ASSERT_EQ(Of<SaveEnded>(end).size(), 1u);
  EXPECT_TRUE(Of<SaveEnded>(end)[0].status.ok());
  ASSERT_EQ(Of<SendTo>(end).size(), 1u);
  EXPECT_EQ(Of<SendTo>(end)[0].to, 0u);
  EXPECT_EQ(std::get<Answer>(Of<SendTo>(end)[0].message), (Answer{true, ""}));
  EXPECT_EQ(leader.state(), LeaderState::kIdle);
  EXPECT_EQ(leader.next_tick(), std::nullopt);
}

TEST_F(LeaderTest, NothingIsSentBeforeTheLastAnswerNorForTheSameAnswerTwice) {
  Ask(kTriggerRequest);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(leader.OnMessage(1, Count{1, 100, milliseconds(10), Mode::kRunning}, At(1)).empty());
  }
  EXPECT_TRUE(leader.OnMessage(0, Count{1, 100, milliseconds(10), Mode::kRunning}, At(1)).empty());
  EXPECT_EQ(leader.state(), LeaderState::kPolling);
}

TEST_F(LeaderTest, TheMarginCoversTheRoundTripInStepsOfTheFastestMember) {
  Ask(kTriggerRequest);
  leader.OnMessage(0, Count{1, 50, milliseconds(10), Mode::kRunning}, At(1));
  leader.OnMessage(1, Count{1, 57, milliseconds(2), Mode::kRunning}, At(2));
  const auto arm = Told<ArmAt>(leader.OnMessage(2, Count{1, 40, Nanoseconds(0), Mode::kRunning}, At(9)));
  ASSERT_EQ(arm.size(), 1u);
  EXPECT_EQ(arm[0].boundary, 57 + 5 + 1);  // 9 ms = 4.5 steps of 2 ms
}

TEST_F(LeaderTest, ANackTriesAgainUnderANewIdWithADoubledMargin) {
  ReachArming();
  const auto again = leader.OnMessage(2, Nack{1, 108}, At(30));
  EXPECT_EQ(Told<Drop>(again).at(0).id, 1u);
  EXPECT_THAT(Told<Poll>(again), ElementsAre(Poll{2}));
  EXPECT_EQ(Told<ArmAt>(CountAll(2, 55)).at(0).boundary, 102 + 2 * 4);
  EXPECT_TRUE(leader.OnMessage(0, Nack{1, 120}, At(56)).empty()) << "an answer to the first try";
  leader.OnMessage(0, Nack{2, 120}, At(60));
  EXPECT_EQ(Told<ArmAt>(CountAll(3, 85)).at(0).boundary, 102 + 4 * 4);
}

TEST_F(LeaderTest, EndlessNacksEndInGivingUpWithTheReason) {
  ReachArming();
  LeaderActions last;
  for (SaveId id = 1; id <= 16; ++id) {
    if (id > 1) CountAll(id, 25);
    last = leader.OnMessage(1, Nack{id, 1000}, At(25));
  }
  ASSERT_EQ(Of<SaveEnded>(last).size(), 1u);
  EXPECT_EQ(Of<SaveEnded>(last)[0].status.code(), Code::kTimeout);
  EXPECT_THAT(Of<SaveEnded>(last)[0].status.message(), HasSubstr("in 16 tries"));
  EXPECT_EQ(Told<Drop>(last).at(0).id, 16u);
  EXPECT_EQ(leader.state(), LeaderState::kIdle);
}

TEST_F(LeaderTest, QuietMembersAtOneCountAreSavedWhereTheyStand) {
  Ask(kTriggerRequest);
  const auto arm = FromAll(25, [](Rank) { return Count{1, 80, milliseconds(10), Mode::kQuiet}; });
  EXPECT_EQ(Told<ArmAt>(arm).at(0).boundary, 80);
}

TEST_F(LeaderTest, QuietMembersAtDifferentCountsMeetAtALaterBoundary) {
  Ask(kTriggerRequest);
  const auto arm = FromAll(25, [](Rank r) {
    return Count{1, 80 + (r == 2), milliseconds(10), Mode::kQuiet};
  });
  EXPECT_EQ(Told<ArmAt>(arm).at(0).boundary, 81 + 4);
}

TEST_F(LeaderTest, AFinalMembersImageNeverStandsForAnEarlierBoundary) {
  leader.OnMessage(0, Finalized{90}, At(0));
  Ask(kTriggerRequest);
  const auto arm = FromAll(25, [](Rank r) {
    return r == 0 ? Count{1, 90, milliseconds(10), Mode::kFinal}
                  : Count{1, 80, milliseconds(10), Mode::kQuiet};
  });
  EXPECT_EQ(Told<ArmAt>(arm).at(0).boundary, 90 + 4);
}

TEST_F(LeaderTest, MembersThatComeToRestShortOfTheBoundaryAreSavedWhereTheyStand) {
  ReachStaging();  // T = 106
  leader.OnMessage(0, Count{1, 104, {}, Mode::kQuiet}, At(30));
  leader.OnMessage(1, Count{1, 104, {}, Mode::kQuiet}, At(31));
  const auto again = leader.OnMessage(2, Count{1, 104, {}, Mode::kQuiet}, At(32));
  EXPECT_EQ(Told<Drop>(again).at(0).id, 1u);
  EXPECT_THAT(Told<Poll>(again), ElementsAre(Poll{2}));
}

TEST_F(LeaderTest, MembersThatStandStillAtTheBoundaryItselfAreLeftAlone) {
  Ask(kTriggerRequest);
  FromAll(25, [](Rank) { return Count{1, 80, milliseconds(10), Mode::kQuiet}; });
  FromAll(25, [](Rank) { return Ack{1}; });
  leader.OnMessage(0, Staged{1, 80, 7, false}, At(26));
  EXPECT_TRUE(leader.OnMessage(0, Finalized{80}, At(27)).empty());
  EXPECT_EQ(leader.state(), LeaderState::kStaging);
}

TEST_F(LeaderTest, AnAbortBeforeGoTriesAgainFurtherOff) {
  ReachArming();
  const auto again = leader.OnMessage(1, Abort{1}, At(30));
  EXPECT_EQ(Told<Drop>(again).at(0).id, 1u);
  EXPECT_THAT(Told<Poll>(again), ElementsAre(Poll{2}));
  EXPECT_EQ(Told<ArmAt>(CountAll(2, 55)).at(0).boundary, 102 + 2 * 4);
}

TEST_F(LeaderTest, AnAbortAfterGoDropsTheSnapshotsThatWereTaken) {
  ReachStaging();
  leader.OnMessage(0, Staged{1, 106, 7, false}, At(30));
  leader.OnMessage(2, Staged{1, 106, 7, false}, At(30));
  const auto again = leader.OnMessage(1, Abort{1}, At(30));
  EXPECT_EQ(Told<Drop>(again).at(0).id, 1u);
  EXPECT_FALSE(Told<Drop>(again).at(0).all_staged);
  EXPECT_TRUE(Of<Prepare>(leader.OnMessage(1, Staged{1, 106, 7, false}, At(31))).empty());
}

TEST_F(LeaderTest, ThreeAbortsEndTheSaveSinceEachHeldTheProgram) {
  ReachArming();
  leader.OnMessage(1, Abort{1}, At(30));
  CountAll(2, 55);
  leader.OnMessage(1, Abort{2}, At(60));
  CountAll(3, 85);
  const auto end = leader.OnMessage(1, Abort{3}, At(90));
  EXPECT_THAT(Told<Drop>(end).at(0).why, HasSubstr("rank 1 waited at boundary 118"));
  EXPECT_EQ(Of<SaveEnded>(end).at(0).status.code(), Code::kTimeout);
  EXPECT_EQ(leader.state(), LeaderState::kIdle);
}

TEST_F(LeaderTest, UnequalLabelsDropTheSaveAndNameTheRanks) {
  ReachStaging();
  const auto end = FromAll(30, [](Rank r) { return Staged{1, 106, r == 2 ? 8 : 7, false}; });
  EXPECT_THAT(Told<Drop>(end).at(0).why, HasSubstr("rank 0 says 7, rank 2 says 8"));
}

TEST_F(LeaderTest, AFinalMembersLabelMayDiffer) {
  ReachStaging();
  const auto staged = FromAll(30, [](Rank r) { return Staged{1, 106, r == 0 ? 3 : 7, r == 0}; });
  EXPECT_EQ(Of<Prepare>(staged).size(), 1u);
  leader.OnPrepared(1, std::string("a"), At(30));
  EXPECT_EQ(Of<Commit>(FromAll(30, [](Rank) { return Record{1, ""}; })).at(0).label, 7);
}

TEST_F(LeaderTest, ASnapshotAtAnotherBoundaryIsNeverCommitted) {
  ReachStaging();
  EXPECT_EQ(Told<Drop>(leader.OnMessage(0, Staged{1, 105, 7, false}, At(30))).size(), 1u);
}

TEST_F(LeaderTest, AFailedSnapshotDropsTheSave) {
  ReachStaging();
  const auto end = leader.OnMessage(2, Failed{1, "no slot"}, At(30));
  EXPECT_THAT(Told<Drop>(end), ElementsAre(Drop{1, false, "rank 2: no slot"}));
}

TEST_F(LeaderTest, ADirectoryThatCannotBeMadeDropsTheSaveBeforeAnythingIsDrained) {
  ReachPreparing();
  const auto end = leader.OnPrepared(1, Status(Code::kPermission, "mkdir /d: denied"), At(30));
  EXPECT_THAT(Told<Drop>(end), ElementsAre(Drop{1, true, "mkdir /d: denied"}));
  EXPECT_EQ(Of<SaveEnded>(end).at(0).status.code(), Code::kPermission);
}

TEST_F(LeaderTest, AFailedDrainDropsTheSave) {
  ReachDraining();
  leader.OnMessage(0, Record{1, "r"}, At(30));
  EXPECT_THAT(Told<Drop>(leader.OnMessage(1, Failed{1, "EIO"}, At(31))),
              ElementsAre(Drop{1, true, "rank 1: EIO"}));
}

TEST_F(LeaderTest, AFailedCommitDropsTheSave) {
  ReachCommitting();
  const auto end = leader.OnCommitted(1, Status(Code::kFenced, "epoch 8 owns /d"), At(30));
  EXPECT_THAT(Told<Drop>(end), ElementsAre(Drop{1, true, "epoch 8 owns /d"}));
  EXPECT_TRUE(Told<Committed>(end).empty());
}

TEST_F(LeaderTest, ResultsOfAnotherSaveAreIgnored) {
  ReachPreparing();
  EXPECT_TRUE(leader.OnPrepared(9, std::string("a"), At(30)).empty());
  EXPECT_TRUE(leader.OnCommitted(1, OkStatus(), At(30)).empty());
  EXPECT_TRUE(leader.OnFinished(OkStatus(), At(30)).empty());
  EXPECT_TRUE(leader.OnMessage(3, Ack{1}, At(30)).empty()) << "a rank that does not exist";
  EXPECT_EQ(leader.state(), LeaderState::kPreparing);
}

// ---- deadlines ----

class LeaderDeadlineTest : public LeaderTest {
 protected:
  std::string GivenUp() {
    EXPECT_TRUE(leader.OnTick(At(59999)).empty());
    const auto end = leader.OnTick(At(60000));
    EXPECT_EQ(Of<SaveEnded>(end).size(), 1u);
    if (Of<SaveEnded>(end).empty()) return {};
    EXPECT_EQ(Of<SaveEnded>(end)[0].status.code(), Code::kTimeout);
    EXPECT_EQ(leader.state(), LeaderState::kIdle);
    return Of<SaveEnded>(end)[0].status.message();
  }
};

TEST_F(LeaderDeadlineTest, PollingIsGivenUpNamingTheMembersThatAreMissing) {
  Ask(kTriggerRequest);
  leader.OnMessage(1, Count{1, 100, milliseconds(10), Mode::kRunning}, At(1));
  EXPECT_EQ(GivenUp(), "time was up while waiting for the members' counts: ranks 0, 2");
}
TEST_F(LeaderDeadlineTest, ArmingIsGivenUp) {
  ReachArming();
  EXPECT_EQ(GivenUp(), "time was up while waiting for the members to be armed: ranks 0, 1, 2");
}
TEST_F(LeaderDeadlineTest, StagingIsGivenUp) {
  ReachStaging();
  leader.OnMessage(0, Staged{1, 106, 7, false}, At(30));
  leader.OnMessage(1, Staged{1, 106, 7, false}, At(30));
  EXPECT_EQ(GivenUp(), "time was up while waiting for the snapshots at the boundary: rank 2");
}
TEST_F(LeaderDeadlineTest, PreparingIsGivenUp) {
  ReachPreparing();
  EXPECT_EQ(GivenUp(), "time was up while waiting for the attempt's directory");
}
TEST_F(LeaderDeadlineTest, DrainingIsGivenUp) {
  ReachDraining();
  leader.OnMessage(0, Record{1, ""}, At(30));
  EXPECT_EQ(GivenUp(), "time was up while waiting for the members' files to be durable: ranks 1, 2");
}
TEST_F(LeaderDeadlineTest, CommittingIsGivenUp) {
  ReachCommitting();
  EXPECT_EQ(GivenUp(), "time was up while waiting for the manifest to be in place");
}
TEST_F(LeaderDeadlineTest, HoldingForASilentMemberIsGivenUp) {
  leader.OnSuspect(2, At(0));
  Ask(kTriggerRequest);
  EXPECT_EQ(GivenUp(), "time was up while waiting for a silent member to answer again: rank 2");
}

TEST_F(LeaderTest, TheTriggersTimeBoundsTheSave) {
  Ask(kTriggerPreempt, 0, seconds(30));
  EXPECT_EQ(leader.next_tick(), At(30000));
  EXPECT_EQ(Of<SaveEnded>(leader.OnTick(At(30000))).size(), 1u);
}

// ---- requests that join or follow ----

TEST_F(LeaderTest, ARequestJoinsWhileNoBoundaryIsSettledAndTheUrgentOneWins) {
  ReachArming();
  EXPECT_TRUE(leader.OnMessage(1, Request{kTriggerPreempt, seconds(20), "tag"}, At(100)).empty());
  EXPECT_EQ(leader.next_tick(), At(20100));
  FromAll(110, [](Rank) { return Ack{1}; });
  FromAll(110, [](Rank) { return Staged{1, 106, 7, false}; });
  leader.OnPrepared(1, std::string("a"), At(110));
  const auto commit = Of<Commit>(FromAll(110, [](Rank) { return Record{1, ""}; })).at(0);
  EXPECT_EQ(commit.reason, kTriggerPreempt);
  EXPECT_THAT(commit.tags, ElementsAre("tag"));
  const auto answers = Of<SendTo>(leader.OnCommitted(1, OkStatus(), At(120)));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].to, 0u);
  EXPECT_EQ(answers[1].to, 1u);
}

TEST_F(LeaderTest, ALaterRequestFollowsAndTheMostUrgentReasonWins) {
  ReachStaging();
  for (Trigger reason : {kTriggerRequest, kTriggerTimeLimit, kTriggerPreempt}) {
    EXPECT_TRUE(leader.OnMessage(1, Request{reason, kNoLimit, ""}, At(26)).empty());
  }
  const auto next = leader.OnMessage(0, Failed{1, "x"}, At(30));
  EXPECT_THAT(Told<Poll>(next), ElementsAre(Poll{2}));
  EXPECT_EQ(leader.state(), LeaderState::kPolling);
  const auto end = leader.OnGone(2, "reset", At(31));
  EXPECT_EQ(Of<SaveEnded>(end).at(0).reason, kTriggerPreempt);
  EXPECT_EQ(Of<SendTo>(end).size(), 3u) << "an answer for each request";
}

TEST_F(LeaderTest, AnIntervalOrTheSamePreemptionOnceMoreIsServedByTheSaveUnderWay) {
  Ask(kTriggerPreempt);
  CountAll(1, 25);
  FromAll(25, [](Rank) { return Ack{1}; });
  Ask(kTriggerInterval, 26);
  Ask(kTriggerPreempt, 26, kNoLimit, 1);
  const auto end = leader.OnMessage(0, Failed{1, "x"}, At(30));
  EXPECT_TRUE(Told<Poll>(end).empty());
  EXPECT_EQ(Of<SendTo>(end).size(), 3u);
}

TEST_F(LeaderTest, WhatIsUnderWayMayNotUseUpTheTimeOfWhatFollows) {
  ReachDraining();
  Ask(kTriggerPreempt, 1000, seconds(30));
  EXPECT_EQ(leader.next_tick(), At(31000));
}

// ---- deadlines, where it is known that writing a save takes 5 s ----

class LeaderShortOfTimeTest : public LeaderTest {
 protected:
  // The first save, staged at 25 ms, is durable at 5025 ms.
  LeaderActions Commit() {
    if (leader.id() == 0) ReachCommitting();
    return leader.OnCommitted(1, OkStatus(), At(5025));
  }
};

TEST_F(LeaderShortOfTimeTest, ASaveThatWouldNotFitAnyMoreIsNotBegunAfterTheOneUnderWay) {
  ReachCommitting();
  Ask(kTriggerPreempt, 3000, seconds(6));  // 3975 ms are left in the end
  const auto end = Commit();
  const auto ended = Of<SaveEnded>(end);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_FALSE(ended[0].stands_in);
  EXPECT_EQ(ended[1].reason, kTriggerPreempt);
  EXPECT_TRUE(ended[1].stands_in);
  EXPECT_TRUE(ended[1].status.ok());
  EXPECT_EQ(ended[1].count, 106);
  EXPECT_THAT(ended[1].requests, ElementsAre(2));
  EXPECT_TRUE(Told<Poll>(end).empty());
  EXPECT_EQ(leader.state(), LeaderState::kIdle);
}

// It took 5 s under a limit that held it back for 3 s; before a deadline there is no limit.
TEST_F(LeaderShortOfTimeTest, ASaveThatFitsInAHurryIsBegunAfterTheOneUnderWay) {
  ReachCommitting();
  Ask(kTriggerPreempt, 3000, seconds(6));  // 3975 ms are left in the end
  const auto end = leader.OnCommitted(1, OkStatus(), At(5025), seconds(3));
  EXPECT_FALSE(Told<Poll>(end).empty());
  EXPECT_EQ(leader.write_time(), seconds(5));
  EXPECT_EQ(leader.hurried_write_time(), seconds(2));
}

TEST_F(LeaderShortOfTimeTest, ASaveWhoseBoundaryIsTooFarOffIsNotBegunAfterTheOneUnderWay) {
  Ask(kTriggerRequest);
  FromAll(25, [&](Rank r) { return Count{1, 100, milliseconds(r == 2 ? 500 : 10), Mode::kRunning}; });
  FromAll(25, [](Rank) { return Ack{1}; });
  FromAll(25, [](Rank) { return Staged{1, 104, 7, false}; });
  leader.OnPrepared(1, std::string("attempt-1"), At(25));
  FromAll(25, [](Rank) { return Record{1, ""}; });
  Ask(kTriggerPreempt, 3000, seconds(8));  // 5975 ms are left in the end, and two steps take a second
  EXPECT_EQ(Of<SaveEnded>(Commit()).size(), 2u);
}

TEST_F(LeaderShortOfTimeTest, ASaveThatFitsIsBegunAfterTheOneUnderWay) {
  ReachCommitting();
  Ask(kTriggerPreempt, 3000, seconds(8));  // 5975 ms are left in the end
  const auto end = Commit();
  EXPECT_EQ(Of<SaveEnded>(end).size(), 1u);
  EXPECT_THAT(Told<Poll>(end), ElementsAre(Poll{2}));
}

TEST_F(LeaderShortOfTimeTest, AnOlderSaveDoesNotStandInForWhatSomebodyAskedFor) {
  ReachCommitting();
  Ask(kTriggerPreempt, 3000, seconds(6));
  Ask(kTriggerRequest, 3000);
  EXPECT_THAT(Told<Poll>(Commit()), ElementsAre(Poll{2}));
}

TEST_F(LeaderShortOfTimeTest, AFailedSaveStandsInForNothing) {
  ReachDraining();
  Ask(kTriggerPreempt, 3000, seconds(6));
  EXPECT_THAT(Told<Poll>(leader.OnMessage(1, Failed{1, "no space"}, At(5025))), ElementsAre(Poll{2}));
}

TEST_F(LeaderShortOfTimeTest, ABoundaryThatIsNotReachedInTimeIsNotWaitedForToTheLast) {
  Commit();
  Ask(kTriggerPreempt, 10000, seconds(30));
  EXPECT_EQ(leader.next_tick(), At(37500));  // half of 5 s before the end
  CountAll(2, 10001);
  FromAll(10001, [](Rank) { return Ack{2}; });
  leader.OnMessage(1, Staged{2, 104, 7, false}, At(10002));
  EXPECT_TRUE(leader.OnTick(At(37499)).empty());
  const auto ended = Of<SaveEnded>(leader.OnTick(At(37500)));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].status.code(), Code::kTimeout);
  EXPECT_EQ(
      ended[0].status.message(),
      "time was up while waiting for the snapshots at the boundary: ranks 0, 2; what is left would be too "
      "short to write it");
}

TEST_F(LeaderShortOfTimeTest, OnceAllHaveStagedTheWholeTimeIsUsed) {
  Commit();
  Ask(kTriggerPreempt, 10000, seconds(30));
  CountAll(2, 10001);
  FromAll(10001, [](Rank) { return Ack{2}; });
  FromAll(36000, [](Rank) { return Staged{2, 104, 7, false}; });
  EXPECT_EQ(leader.writing_since(), At(36000));
  EXPECT_EQ(leader.next_tick(), At(40000));
}

TEST_F(LeaderShortOfTimeTest, WhatFollowsBoundsAlsoTheBoundaryOfTheSaveUnderWay) {
  Commit();
  Ask(kTriggerInterval, 10000);
  CountAll(2, 10001);
  FromAll(10001, [](Rank) { return Ack{2}; });
  EXPECT_EQ(leader.next_tick(), At(70000));
  Ask(kTriggerPreempt, 11000, seconds(30));
  EXPECT_EQ(leader.next_tick(), At(38500));
}

TEST_F(LeaderShortOfTimeTest, APreemptionWhileAllAreQuietIsSavedWhereTheyStand) {
  Commit();
  Ask(kTriggerPreempt, 10000, seconds(30));
  const auto arm = Told<ArmAt>(FromAll(10001, [](Rank) {
    return Count{2, 120, Nanoseconds(0), Mode::kQuiet};
  }));
  EXPECT_EQ(arm.at(0).boundary, 120);
}

TEST_F(LeaderShortOfTimeTest, APreemptionWhileOneRankIsQuietElsewhereIsTriedAgainWhereTheyMeet) {
  Commit();
  Ask(kTriggerPreempt, 10000, seconds(30));
  // Rank 2 validates at 118, the others run on: the boundary lies ahead of all.
  leader.OnMessage(0, Count{2, 120, milliseconds(10), Mode::kRunning}, At(10001));
  leader.OnMessage(1, Count{2, 120, milliseconds(10), Mode::kRunning}, At(10001));
  const auto arm = Told<ArmAt>(leader.OnMessage(2, Count{2, 118, milliseconds(10), Mode::kQuiet}, At(10001)));
  EXPECT_EQ(arm.at(0).boundary, 122);
  FromAll(10002, [](Rank) { return Ack{2}; });
  // Rank 2 leaves its stretch and comes to validate at 121, as the others do: short of 122.
  for (Rank rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(leader.OnMessage(rank, Count{2, 121, milliseconds(10), Mode::kQuiet}, At(10003)).empty());
  const auto again = leader.OnMessage(2, Count{2, 121, milliseconds(10), Mode::kQuiet}, At(10004));
  EXPECT_THAT(Told<Drop>(again).at(0).id, 2u);
  EXPECT_THAT(Told<Poll>(again), ElementsAre(Poll{3}));
  const auto there = Told<ArmAt>(FromAll(10005, [](Rank) {
    return Count{3, 121, milliseconds(10), Mode::kQuiet};
  }));
  EXPECT_EQ(there.at(0).boundary, 121);
}

// ---- silent and gone members ----

TEST_F(LeaderTest, ASilentMemberDropsTheTryAndTheRequestWaitsForIt) {
  ReachStaging();
  EXPECT_EQ(Told<Drop>(leader.OnSuspect(2, At(30))).at(0).id, 1u);
  EXPECT_EQ(leader.state(), LeaderState::kHeld);
  EXPECT_TRUE(leader.OnSuspect(2, At(31)).empty());
  EXPECT_THAT(Told<Poll>(leader.OnRejoined(2, At(40))), ElementsAre(Poll{2}));
}

TEST_F(LeaderTest, ASilentMemberThatHasStagedDoesNotHinder) {
  ReachStaging();
  leader.OnMessage(2, Staged{1, 106, 7, false}, At(28));
  EXPECT_TRUE(leader.OnSuspect(2, At(30)).empty());
  leader.OnMessage(0, Staged{1, 106, 7, false}, At(31));
  EXPECT_EQ(Of<Prepare>(leader.OnMessage(1, Staged{1, 106, 7, false}, At(31))).size(), 1u);
}

TEST_F(LeaderTest, AMemberGoneBeforeItsRecordDropsTheSaveAndEndsSaving) {
  ReachDraining();
  leader.OnMessage(0, Record{1, ""}, At(30));
  const auto end = leader.OnGone(1, "connection reset", At(31));
  EXPECT_EQ(Told<Drop>(end).at(0).id, 1u);
  ASSERT_EQ(Told<Close>(end).size(), 1u);
  EXPECT_THAT(Told<Close>(end)[0].why, HasSubstr("rank 1 is gone (connection reset)"));
  const auto refused = Ask(kTriggerRequest, 40);
  EXPECT_THAT(std::get<Answer>(Of<SendTo>(refused).at(0).message).why, HasSubstr("rank 1 is gone"));
}

TEST_F(LeaderTest, AMemberGoneAfterItsRecordDoesNotHinderTheCommit) {
  ReachDraining();
  leader.OnMessage(1, Record{1, ""}, At(30));
  EXPECT_TRUE(leader.OnGone(1, "exit", At(31)).empty());
  leader.OnMessage(0, Record{1, ""}, At(32));
  EXPECT_EQ(Of<Commit>(leader.OnMessage(2, Record{1, ""}, At(33))).size(), 1u);
  EXPECT_TRUE(leader.OnGone(0, "exit", At(34)).empty());
  const auto end = leader.OnCommitted(1, OkStatus(), At(40));
  EXPECT_EQ(Told<Committed>(end).size(), 1u);
  EXPECT_EQ(Told<Close>(end).size(), 1u);
  EXPECT_EQ(leader.state(), LeaderState::kClosed);
}

TEST_F(LeaderTest, ASaveThatALossDoesNotHinderServesThoseWhoseTimeIsShort) {
  ReachDraining();
  leader.OnMessage(1, Record{1, ""}, At(30));
  leader.OnGone(1, "exit", At(31));
  EXPECT_TRUE(Ask(kTriggerPreempt, 32, seconds(20)).empty());
  const auto refused = Of<SaveEnded>(Ask(kTriggerRequest, 33));
  ASSERT_EQ(refused.size(), 1u) << "somebody wants the state of this very moment";
  EXPECT_EQ(refused[0].id, 0u);
  EXPECT_FALSE(refused[0].status.ok());
  leader.OnMessage(0, Record{1, ""}, At(34));
  EXPECT_EQ(Of<Commit>(leader.OnMessage(2, Record{1, ""}, At(35))).size(), 1u);
  const auto ended = Of<SaveEnded>(leader.OnCommitted(1, OkStatus(), At(40)));
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_THAT(ended[1].requests, ElementsAre(2));
  EXPECT_TRUE(ended[1].status.ok() && ended[1].stands_in);
  EXPECT_EQ(leader.state(), LeaderState::kClosed);
}

TEST_F(LeaderTest, AMemberGoneBeforeAllHaveStagedEndsTheSaveAtOnce) {
  ReachStaging();
  leader.OnMessage(1, Staged{1, 106, 7, false}, At(26));
  const auto end = leader.OnGone(1, "exit", At(30));
  EXPECT_FALSE(Told<Drop>(end).at(0).all_staged);
  EXPECT_EQ(leader.state(), LeaderState::kClosed);
}

TEST_F(LeaderTest, AMemberGoneWhileTheDirectoryIsMadeEndsTheSave) {
  ReachPreparing();
  EXPECT_TRUE(Told<Drop>(leader.OnGone(1, "exit", At(30))).at(0).all_staged);
  EXPECT_TRUE(leader.OnPrepared(1, std::string("a"), At(31)).empty());
}

TEST_F(LeaderTest, AMemberGoneWhileNothingIsUnderWayEndsSavingAtOnce) {
  EXPECT_EQ(Told<Close>(leader.OnGone(1, "exit", At(0))).size(), 1u);
  EXPECT_EQ(leader.next_tick(), std::nullopt);
}

// ---- the end ----

TEST_F(LeaderTest, WhenAllHaveFinalizedTheLastStateIsSavedOnceAndTheRunRecordedAsFinished) {
  leader.OnMessage(0, Finalized{110}, At(0));
  leader.OnMessage(1, Finalized{110}, At(0));
  EXPECT_EQ(leader.state(), LeaderState::kIdle);
  EXPECT_THAT(Told<Poll>(leader.OnMessage(2, Finalized{110}, At(1))), ElementsAre(Poll{1}));
  const auto arm = FromAll(2, [](Rank) { return Count{1, 110, milliseconds(10), Mode::kFinal}; });
  EXPECT_EQ(Told<ArmAt>(arm).at(0).boundary, 110);
  FromAll(3, [](Rank) { return Ack{1}; });
  FromAll(4, [](Rank) { return Staged{1, 110, 7, true}; });
  leader.OnPrepared(1, std::string("a"), At(5));
  EXPECT_EQ(Of<Commit>(FromAll(6, [](Rank) { return Record{1, ""}; })).at(0).reason, kTriggerEnd);
  EXPECT_EQ(Of<Finish>(leader.OnCommitted(1, OkStatus(), At(7))).size(), 1u);
  EXPECT_THAT(Told<Close>(leader.OnFinished(OkStatus(), At(8))), ElementsAre(Close{true, ""}));
}

TEST_F(LeaderTest, NothingIsSavedAtTheEndWhenTheCountHasNotMovedSinceTheLastCommit) {
  ReachCommitting();
  leader.OnCommitted(1, OkStatus(), At(26));
  leader.OnMessage(0, Finalized{106}, At(30));
  leader.OnMessage(1, Finalized{106}, At(30));
  const auto end = leader.OnMessage(2, Finalized{106}, At(30));
  EXPECT_EQ(Of<Finish>(end).size(), 1u);
  EXPECT_TRUE(Told<Poll>(end).empty());
}

TEST_F(LeaderTest, AFailedLastSaveClosesTheLifeUnfinished) {
  FinalizeAll();
  const auto end = leader.OnMessage(0, Failed{1, "x"}, At(40));
  EXPECT_TRUE(end.empty()) << "nothing has been asked to stage yet";
  const auto close = leader.OnTick(At(60030));
  ASSERT_EQ(Told<Close>(close).size(), 1u);
  EXPECT_FALSE(Told<Close>(close)[0].finished);
  EXPECT_THAT(Told<Close>(close)[0].why, HasSubstr("the last save failed: time was up"));
  EXPECT_TRUE(Of<Finish>(close).empty());
}

TEST_F(LeaderTest, MembersThatAllFinalizeShortOfTheBoundaryAreSavedUnderTheirOwnCount) {
  ReachStaging();  // T = 106
  FinalizeAll(104);
  EXPECT_EQ(Of<Prepare>(FromAll(31, [](Rank) { return Staged{1, 106, 7, true}; })).at(0).count, 104);
}

TEST_F(LeaderTest, ARunThatIsNotSavedAtItsEndIsNotFinished) {
  Leader l({.members = 1, .save_at_end = false});
  const auto close = Told<Close>(l.OnMessage(0, Finalized{5}, At(0)));
  ASSERT_EQ(close.size(), 1u);
  EXPECT_FALSE(close[0].finished);
  EXPECT_EQ(close[0].why, "") << "the user wants it so";
  Leader restored({.members = 1, .save_at_end = false, .committed_count = 5});
  EXPECT_EQ(Of<Finish>(restored.OnMessage(0, Finalized{5}, At(0))).size(), 1u);
}

TEST_F(LeaderTest, NothingIsSavedAtTheEndWhenTheStateOfAMemberIsGone) {
  leader.OnMessage(0, Finalized{110}, At(0));
  leader.OnMessage(1, Finalized{110, true}, At(0));
  const auto end = leader.OnMessage(2, Finalized{110}, At(1));
  EXPECT_TRUE(Told<Poll>(end).empty());
  ASSERT_EQ(Told<Close>(end).size(), 1u);
  EXPECT_FALSE(Told<Close>(end)[0].finished);
  EXPECT_EQ(Told<Close>(end)[0].why, "") << "the program wants it so";
}

TEST_F(LeaderTest, WaitingEndsWhenAllWaitAndTheSaveUnderWayHasEnded) {
  ReachCommitting();
  EXPECT_THAT(Told<Synced>(FromAll(30, [](Rank) { return Sync{}; })), ElementsAre());
  EXPECT_THAT(Told<Synced>(leader.OnCommitted(1, OkStatus(), At(50))), ElementsAre(Synced{}));
  EXPECT_THAT(Told<Synced>(leader.OnMessage(0, Sync{}, At(60))), ElementsAre())
      << "the others do not wait again";
}

TEST_F(LeaderTest, WaitingEndsAtOnceWhenNothingIsWanted) {
  EXPECT_THAT(Told<Synced>(FromAll(30, [](Rank) { return Sync{}; })), ElementsAre(Synced{}));
}

TEST_F(LeaderTest, ARecordOfTheEndThatHangsIsNotWaitedForWithoutBound) {
  Leader l({.members = 1, .save_timeout = seconds(60), .committed_count = 5});
  l.OnMessage(0, Finalized{5}, At(0));
  EXPECT_TRUE(l.OnTick(At(59999)).empty());
  EXPECT_EQ(Told<Close>(l.OnTick(At(60000))).size(), 1u);
}

}  // namespace
}  // namespace cairn::agreement
