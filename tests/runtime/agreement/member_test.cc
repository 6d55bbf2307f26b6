#include "runtime/agreement/member.h"

#include <gmock/gmock.h>

#include "tests/runtime/agreement/actions.h"

namespace cairn::agreement {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Save 1 is armed for boundary 106 by a member at count 100 with label 1000 + count.
class MemberTest : public ::testing::Test {
 protected:
  MemberActions Tell(ToMember message, int64_t ms = 0) {
    return member.OnMessage(std::move(message), {.count = 100, .period = milliseconds(10)}, At(ms));
  }
  MemberActions ReachArmed(Nanoseconds time_left = seconds(60)) {
    Tell(Poll{1});
    Tell(ArmAt{1, 106, time_left});
    return member.OnArmed(100);
  }
  MemberActions ReachWaiting() {
    ReachArmed();
    return member.OnBoundary(106, 1106, At(50));
  }
  MemberActions ReachSnapshotting() {
    ReachWaiting();
    return Tell(Go{1}, 60);
  }
  MemberActions ReachStaged() {
    ReachSnapshotting();
    return member.OnSnapshotted(1, OkStatus());
  }
  MemberActions ReachDraining() {
    ReachStaged();
    return Tell(Drain{1, "attempt"});
  }
  MemberActions ReachRecorded() {
    ReachDraining();
    return member.OnDrained(1, std::string("record"));
  }

  Member member{{.boundary_wait = seconds(2)}};
};

TEST_F(MemberTest, ASaveRunsFromPollToCommit) {
  EXPECT_THAT(Sent<Count>(Tell(Poll{1})), ElementsAre(Count{1, 100, milliseconds(10), Mode::kRunning}));
  const auto arm = Tell(ArmAt{1, 106, seconds(60)});
  EXPECT_EQ(Of<Arm>(arm).at(0).boundary, 106);
  EXPECT_TRUE(Sent<Ack>(arm).empty()) << "an answer before the store would miss a member that passes";
  EXPECT_THAT(Sent<Ack>(member.OnArmed(105)), ElementsAre(Ack{1}));

  const auto boundary = member.OnBoundary(106, 1106, At(50));
  EXPECT_EQ(Of<Disarm>(boundary).size(), 1u);
  EXPECT_TRUE(member.holds_application());
  EXPECT_EQ(member.wait_until(), At(2050));

  const auto go = Of<TakeSnapshot>(Tell(Go{1}, 60));
  ASSERT_EQ(go.size(), 1u);
  EXPECT_EQ(go[0].boundary, 106);
  EXPECT_EQ(go[0].mode, Mode::kRunning);
  EXPECT_TRUE(member.holds_application());
  EXPECT_EQ(member.wait_until(), std::nullopt);

  EXPECT_THAT(Sent<Staged>(member.OnSnapshotted(1, OkStatus())), ElementsAre(Staged{1, 106, 1106, false}));
  EXPECT_FALSE(member.holds_application());
  EXPECT_FALSE(member.at_rest());

  EXPECT_EQ(Of<StartDrain>(Tell(Drain{1, "attempt"})).at(0).attempt, "attempt");
  EXPECT_THAT(Sent<Record>(member.OnDrained(1, std::string("record"))), ElementsAre(Record{1, "record"}));
  const auto ended = Of<Ended>(Tell(Committed{1}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].outcome, Outcome::kCommitted);
  EXPECT_TRUE(member.at_rest());
  EXPECT_EQ(member.state(), MemberState::kIdle);
}

TEST_F(MemberTest, TheApplicationGoesOnWhileWhatItDoesNotDisturbIsCopied) {
  ReachSnapshotting();
  member.OnLeft(2);
  EXPECT_TRUE(member.holds_application());
  member.OnLeft(1);
  EXPECT_FALSE(member.holds_application());
  EXPECT_EQ(member.state(), MemberState::kSnapshotting);
  EXPECT_TRUE(member.has_snapshot());
  EXPECT_THAT(Sent<Staged>(member.OnSnapshotted(1, OkStatus())), ElementsAre(Staged{1, 106, 1106, false}));
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, WithGoInHandTheSnapshotIsTakenOnArrival) {
  ReachArmed();
  EXPECT_THAT(Tell(Go{1}), IsEmpty());
  EXPECT_EQ(Of<TakeSnapshot>(member.OnBoundary(106, 1106, At(50))).size(), 1u);
  EXPECT_TRUE(member.holds_application());
}

TEST_F(MemberTest, ACountAtOrPastTheBoundaryIsRefusedAndDisarmed) {
  for (int64_t count : {106, 107}) {
    Tell(ArmAt{1, 106, seconds(60)});
    const auto refused = member.OnArmed(count);
    EXPECT_THAT(Sent<Nack>(refused), ElementsAre(Nack{1, count}));
    EXPECT_EQ(Of<Disarm>(refused).size(), 1u);
    EXPECT_THAT(member.OnBoundary(106, 1106, At(1)), IsEmpty())
        << "the step that saw the boundary a moment too late";
    EXPECT_FALSE(member.holds_application());
  }
}

TEST_F(MemberTest, OtherBoundariesThanTheArmedOneArePassed) {
  ReachArmed();
  EXPECT_THAT(member.OnBoundary(105, 1105, At(1)), IsEmpty());
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, TheWaitAtTheBoundaryIsBoundedByTheSetting) {
  ReachWaiting();
  EXPECT_THAT(member.OnWaitExpired(At(2049)), IsEmpty());
  EXPECT_TRUE(member.holds_application());
  EXPECT_THAT(Sent<Abort>(member.OnWaitExpired(At(2050))), ElementsAre(Abort{1}));
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, TheWaitAtTheBoundaryIsBoundedByTheTimeLeft) {
  ReachArmed(milliseconds(500));
  member.OnBoundary(106, 1106, At(50));
  EXPECT_EQ(member.wait_until(), At(500));
}

TEST_F(MemberTest, AGoAfterTheMemberHasLeftTheBoundaryIsIgnored) {
  ReachWaiting();
  member.OnWaitExpired(At(2050));
  EXPECT_THAT(Tell(Go{1}, 2051), IsEmpty());
  EXPECT_EQ(member.state(), MemberState::kIdle);
  EXPECT_THAT(Tell(Drop{1, false, "aborted"}), IsEmpty());
}

TEST_F(MemberTest, MessagesOfAnotherIdDoNothing) {
  ReachWaiting();
  EXPECT_THAT(Tell(Go{2}), IsEmpty());
  EXPECT_THAT(Tell(Drop{2, false, "x"}), IsEmpty());
  EXPECT_TRUE(member.holds_application());
  Tell(Go{1});
  EXPECT_THAT(member.OnSnapshotted(2, OkStatus()), IsEmpty());
  EXPECT_EQ(member.state(), MemberState::kSnapshotting);
}

TEST_F(MemberTest, ADropReleasesOrDisarmsTheMember) {
  ReachArmed();
  EXPECT_EQ(Of<Disarm>(Tell(Drop{1, false, "x"})).size(), 1u);
  EXPECT_EQ(member.state(), MemberState::kIdle);
  Tell(ArmAt{2, 106, seconds(60)});
  member.OnArmed(100);
  member.OnBoundary(106, 1106, At(50));
  EXPECT_THAT(Tell(Drop{2, false, "x"}), IsEmpty());
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, ADropDuringTheCopyHoldsTheApplicationUntilTheCopyIsOver) {
  ReachSnapshotting();
  EXPECT_THAT(Tell(Drop{1, false, "x"}), IsEmpty());
  EXPECT_TRUE(member.holds_application());
  EXPECT_THAT(Tell(Poll{2}), IsEmpty()) << "answered when the slot is free again";
  const auto after = member.OnSnapshotted(1, OkStatus());
  EXPECT_EQ(Of<Ended>(after).at(0).outcome, Outcome::kDropped);
  EXPECT_THAT(Sent<Staged>(after), IsEmpty());
  EXPECT_THAT(Sent<Count>(after), ElementsAre(Count{2, 100, milliseconds(10), Mode::kRunning}));
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, TheSlotOfASaveThatNotAllHadStagedIsWorthless) {
  ReachStaged();
  EXPECT_EQ(Of<Ended>(Tell(Drop{1, false, "x"})).at(0).outcome, Outcome::kDropped);
}
TEST_F(MemberTest, TheSlotOfASaveThatAllHadStagedIsKept) {
  ReachStaged();
  EXPECT_EQ(Of<Ended>(Tell(Drop{1, true, "no space"})).at(0).outcome, Outcome::kLocal);
}
TEST_F(MemberTest, TheSlotOfASaveDroppedWhileDrainingIsKept) {
  ReachDraining();
  EXPECT_EQ(Of<Ended>(Tell(Drop{1, true, "x"})).at(0).outcome, Outcome::kLocal);
  EXPECT_THAT(member.OnDrained(1, std::string("late")), IsEmpty());
}

TEST_F(MemberTest, AFailedCopyIsReportedAndTheApplicationGoesOn) {
  ReachSnapshotting();
  const auto after = member.OnSnapshotted(1, {Code::kNoSpace, "no slot"});
  EXPECT_THAT(Sent<Failed>(after), ElementsAre(Failed{1, "no slot"}));
  EXPECT_EQ(Of<Ended>(after).at(0).outcome, Outcome::kDropped);
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, AFailedDrainIsReported) {
  ReachDraining();
  const auto after = member.OnDrained(1, Status(Code::kIo, "fsync: EIO"));
  EXPECT_THAT(Sent<Failed>(after), ElementsAre(Failed{1, "fsync: EIO"}));
  EXPECT_EQ(Of<Ended>(after).at(0).outcome, Outcome::kLocal);
}

// ---- quiet ----

TEST_F(MemberTest, AQuietMemberIsSavedWhereItStandsWithoutBeingHeld) {
  member.OnQuietBegin(100, 1100);
  EXPECT_THAT(Sent<Count>(Tell(Poll{1})), ElementsAre(Count{1, 100, milliseconds(10), Mode::kQuiet}));
  Tell(ArmAt{1, 100, seconds(60)});
  EXPECT_THAT(Sent<Ack>(member.OnArmed(100)), ElementsAre(Ack{1}));
  EXPECT_FALSE(member.holds_application());
  EXPECT_EQ(Of<TakeSnapshot>(Tell(Go{1})).at(0).mode, Mode::kQuiet);
  EXPECT_THAT(Sent<Staged>(member.OnSnapshotted(1, OkStatus())), ElementsAre(Staged{1, 100, 1100, false}));
}

TEST_F(MemberTest, LeavingQuietWaitsForTheCopyThatIsBeingTaken) {
  member.OnQuietBegin(100, 1100);
  Tell(ArmAt{1, 100, seconds(60)});
  member.OnArmed(100);
  Tell(Go{1});
  member.OnQuietEnd(At(10));
  EXPECT_TRUE(member.holds_application());
  member.OnSnapshotted(1, OkStatus());
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, LeavingQuietAtTheBoundaryWaitsForGoWithinTheBound) {
  member.OnQuietBegin(100, 1100);
  Tell(ArmAt{1, 100, seconds(60)});
  member.OnArmed(100);
  EXPECT_EQ(member.wait_until(), std::nullopt);
  member.OnQuietEnd(At(10));
  EXPECT_TRUE(member.holds_application());
  EXPECT_EQ(member.wait_until(), At(2010));
  EXPECT_THAT(Sent<Abort>(member.OnWaitExpired(At(2010))), ElementsAre(Abort{1}));
}

TEST_F(MemberTest, AMemberThatHasLeftQuietRefusesTheBoundaryWhereItStood) {
  member.OnQuietBegin(100, 1100);
  Tell(Poll{1});
  member.OnQuietEnd(At(1));
  Tell(ArmAt{1, 100, seconds(60)});
  EXPECT_THAT(Sent<Nack>(member.OnArmed(100)), ElementsAre(Nack{1, 100}));
}

TEST_F(MemberTest, ComingToRestWhileArmedIsTold) {
  ReachArmed();
  EXPECT_THAT(Sent<Count>(member.OnQuietBegin(103, 1103)), ElementsAre(Count{1, 103, {}, Mode::kQuiet}));
  EXPECT_THAT(Sent<Count>(member.OnQuietEnd(At(9))), ElementsAre(Count{1, 103, {}, Mode::kRunning}));
}

TEST_F(MemberTest, ComingToRestBetweenPollAndArmIsTold) {
  Tell(Poll{1});
  member.OnQuietBegin(103, 1103);
  Tell(ArmAt{1, 106, seconds(60)});
  EXPECT_THAT(Sent<Count>(member.OnArmed(103)), ElementsAre(Count{1, 103, {}, Mode::kQuiet}));
}

TEST_F(MemberTest, WaitingLastsUntilTheLeadersWordOrItsLoss) {
  EXPECT_THAT(Sent<Sync>(member.OnWait()), ElementsAre(Sync{}));
  EXPECT_FALSE(member.at_rest());
  Tell(Synced{});
  EXPECT_TRUE(member.at_rest());
  member.OnWait();
  member.OnLeaderGone("rank 0 is gone");
  EXPECT_TRUE(member.at_rest());
}

// ---- the end ----

TEST_F(MemberTest, AFinalMemberSaysWhenItsStateIsGone) {
  EXPECT_THAT(Sent<Finalized>(member.OnFinalized(90, 1090, true)), ElementsAre(Finalized{90, true}));
}

TEST_F(MemberTest, AFinalMembersImageStandsForALaterBoundary) {
  EXPECT_THAT(Sent<Finalized>(member.OnFinalized(90, 1090)), ElementsAre(Finalized{90}));
  EXPECT_TRUE(member.holds_application());
  Tell(ArmAt{1, 106, seconds(60)});
  EXPECT_THAT(Sent<Ack>(member.OnArmed(90)), ElementsAre(Ack{1}));
  EXPECT_EQ(member.wait_until(), std::nullopt);
  EXPECT_EQ(Of<TakeSnapshot>(Tell(Go{1})).at(0).mode, Mode::kFinal);
  EXPECT_THAT(Sent<Staged>(member.OnSnapshotted(1, OkStatus())), ElementsAre(Staged{1, 106, 1090, true}));
  EXPECT_TRUE(member.holds_application()) << "until Close";
  EXPECT_EQ(Of<Closed>(Tell(Close{true, ""})).at(0).status.code(), Code::kOk);
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, ARunThatIsNotToBeSavedAtItsEndEndsWithoutError) {
  member.OnFinalized(90, 1090);
  EXPECT_EQ(Of<Closed>(Tell(Close{false, ""})).at(0).status.code(), Code::kOk);
  EXPECT_FALSE(member.holds_application());
}

TEST_F(MemberTest, FinalizingShortOfTheArmedBoundaryMakesTheImageFinal) {
  ReachArmed();
  member.OnFinalized(103, 1103);
  EXPECT_EQ(Of<TakeSnapshot>(Tell(Go{1})).size(), 1u);
}

TEST_F(MemberTest, FinalizingWithGoInHandTakesTheSnapshotAtOnce) {
  ReachArmed();
  Tell(Go{1});
  EXPECT_EQ(Of<TakeSnapshot>(member.OnFinalized(103, 1103)).size(), 1u);
}

TEST_F(MemberTest, ALostLeaderEndsSavingAndHoldsNobody) {
  ReachWaiting();
  const auto closed = Of<Closed>(member.OnLeaderGone("rank 0 is gone"));
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].status.message(), "rank 0 is gone");
  EXPECT_FALSE(member.holds_application());
  EXPECT_THAT(Tell(Poll{2}), IsEmpty());
  member.OnFinalized(200, 1200);
  EXPECT_FALSE(member.holds_application());
  EXPECT_THAT(member.OnLeaderGone("again"), IsEmpty());
}

TEST_F(MemberTest, ALostLeaderLeavesADurableRecordAsALocalImage) {
  ReachRecorded();
  EXPECT_EQ(Of<Ended>(member.OnLeaderGone("gone")).at(0).outcome, Outcome::kLocal);
}

TEST_F(MemberTest, ALostLeaderDuringTheCopyHoldsTheApplicationUntilTheCopyIsOver) {
  ReachSnapshotting();
  member.OnLeaderGone("gone");
  EXPECT_TRUE(member.holds_application());
  EXPECT_EQ(Of<Ended>(member.OnSnapshotted(1, OkStatus())).size(), 1u);
  EXPECT_FALSE(member.holds_application());
  EXPECT_EQ(member.state(), MemberState::kClosed);
}

TEST_F(MemberTest, EachRequestIsAnsweredOnceAlsoByALostLeader) {
  EXPECT_THAT(Sent<Request>(member.OnTrigger(kTriggerRequest, kNoLimit, "t")),
              ElementsAre(Request{kTriggerRequest, kNoLimit, "t"}));
  member.OnTrigger(kTriggerRequest, kNoLimit, "");
  EXPECT_FALSE(member.at_rest());
  EXPECT_TRUE(Of<Answered>(Tell(Answer{true, ""})).at(0).status.ok());
  EXPECT_FALSE(member.at_rest());
  EXPECT_THAT(Of<Answered>(member.OnLeaderGone("gone")).at(0).status.message(), HasSubstr("gone"));
  EXPECT_TRUE(member.at_rest());
  EXPECT_EQ(Of<Answered>(member.OnTrigger(kTriggerPreempt, kNoLimit, "")).size(), 1u);
}

}  // namespace
}  // namespace cairn::agreement
