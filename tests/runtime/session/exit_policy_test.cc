#include "runtime/session/exit_policy.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using Action = ExitPolicy::Action;
using State = ExitPolicy::State;

ExitPolicy::Verdict Preempted(bool may_requeue = true) {
  return {Cause::kPreempted, 18, may_requeue, "PreemptMode=CANCEL"};
}

using FinalSave = ExitPolicy::FinalSave;
using Newest = FinalSave::Newest;

constexpr FinalSave kDurable{.durable = true};

ExitPolicy::Verdict Silence() { return {Cause::kUnknown, std::nullopt, false, "no answer", false}; }
ExitPolicy::Verdict TimeLimit() { return {Cause::kTimeLimit, 20, true, ""}; }

// A batch job that saves for the last time.
ExitPolicy Saving(const ExitPolicy::Verdict& verdict) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause(verdict, true), Action::kFinalSave);
  return policy;
}

TEST(ExitPolicy, PreemptedBatchJobSavesRequeuesAndWaitsForTheKill) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kRequeue);
  EXPECT_EQ(policy.OnRequeued(true), Action::kAwaitKill);
  EXPECT_EQ(policy.OnSignal(), Action::kLeave);  // Slurm's own, after the requeue
  EXPECT_EQ(policy.state(), State::kLeft);
}

TEST(ExitPolicy, ALifeIsOverForAnotherOneOnlyWhileTheJobIsNotBeingEnded) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnLifeOver(), Action::kLeave);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
  ExitPolicy preempted = Saving(Preempted());
  EXPECT_EQ(preempted.OnLifeOver(), Action::kNothing);
  EXPECT_EQ(preempted.OnFinalSave(kDurable), Action::kRequeue);
}

TEST(ExitPolicy, CancelledJobLeavesAtOnceAndNeverComesBack) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kLeave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kNothing);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
}

TEST(ExitPolicy, CancelDuringTheDeadlineWatchsSaveLeavesAtOnce) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnDeadlineWatch(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause({Cause::kTimeLimit, 20, true, ""}, true), Action::kFinalSave);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);  // it may be a cancel
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kLeave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kNothing);  // never requeued
}

TEST(ExitPolicy, ACancelDuringTheSaveOfAPreemptionLeavesAtOnce) {
  ExitPolicy policy = Saving(Preempted());
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kNothing) << "the end of the grace time";
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kLeave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kNothing);  // never requeued
}

TEST(ExitPolicy, ACancelThatComesBetweenAPreemptionAndItsAnswerLeavesAtOnce) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kFinalSave);
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kLeave);
}

TEST(ExitPolicy, OwnRequeueInFlightIsNotTakenForACancel) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnDeadlineWatch();
  (void)policy.OnCause({Cause::kTimeLimit, 20, true, ""}, true);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kRequeue);
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kNothing);
  EXPECT_EQ(policy.OnRequeued(true), Action::kAwaitKill);
}

TEST(ExitPolicy, TermThatOvertakesTheRequeuesAnswerIsNotLost) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kRequeue);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
  EXPECT_EQ(policy.OnRequeued(true), Action::kLeave);
}

TEST(ExitPolicy, UnknownCauseSavesAndThenDoesWhatTermDoes) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause({Cause::kUnknown, std::nullopt, false, "no answer"}, true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kLeave);
}

TEST(ExitPolicy, SlurmThatIsSilentIsAskedUntilItAnswersAndThenTheJobIsRequeued) {
  ExitPolicy policy = Saving(Silence());
  EXPECT_TRUE(policy.wants_answer());
  EXPECT_EQ(policy.OnCause(Silence(), false), Action::kNothing);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kNothing);
  EXPECT_EQ(policy.state(), State::kAskingAgain);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
  EXPECT_EQ(policy.OnCause(Silence(), false), Action::kNothing);
  EXPECT_TRUE(policy.wants_answer());
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kRequeue);
  EXPECT_FALSE(policy.wants_answer());
}

TEST(ExitPolicy, AnAnswerDuringTheSaveDecidesWhatFollowsIt) {
  ExitPolicy policy = Saving(Silence());
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kNothing);
  EXPECT_FALSE(policy.wants_answer());
  EXPECT_EQ(policy.verdict().seconds_left, 18);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kRequeue);
}

TEST(ExitPolicy, SlurmThatStaysSilentIsNotWaitedForBeyondTheGraceTime) {
  ExitPolicy policy = Saving(Silence());
  EXPECT_EQ(policy.OnGraceOver(), Action::kNothing) << "the save is bounded by itself";
  (void)policy.OnFinalSave(kDurable);
  EXPECT_EQ(policy.OnGraceOver(), Action::kLeave);
}

TEST(ExitPolicy, AFailedSaveIsTriedAgainWhileThereIsTime) {
  ExitPolicy policy = Saving(Preempted());
  EXPECT_EQ(policy.OnFinalSave({.time_left = true}), Action::kTryAgain);
  EXPECT_EQ(policy.state(), State::kSaving);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kRequeue);
  EXPECT_FALSE(policy.falls_back());
}

TEST(ExitPolicy, AJobWhoseFinalSaveFailedIsRequeuedToGoOnFromItsNewestCheckpoint) {
  ExitPolicy preempted = Saving(Preempted());
  EXPECT_EQ(preempted.OnFinalSave({.newest = Newest::kOwn}), Action::kRequeue);
  EXPECT_TRUE(preempted.falls_back());
  EXPECT_EQ(Saving(Preempted()).OnFinalSave({.newest = Newest::kRestored}), Action::kRequeue);
  EXPECT_EQ(Saving(TimeLimit()).OnFinalSave({.newest = Newest::kOwn}), Action::kRequeue);
}

TEST(ExitPolicy, AJobThatCameToNothingNewWithinItsTimeLimitIsNotRequeued) {
  ExitPolicy policy = Saving(TimeLimit());
  EXPECT_EQ(policy.OnFinalSave({.newest = Newest::kRestored}), Action::kAwaitKill);
  EXPECT_EQ(policy.WhyNoRequeue(), "the final save is not durable");
}

TEST(ExitPolicy, ALaterSaveMakesUpForAFailedOne) {
  ExitPolicy policy = Saving(TimeLimit());
  EXPECT_EQ(policy.OnLaterSave(), Action::kNothing) << "the final save goes on";
  EXPECT_EQ(policy.OnFinalSave({}), Action::kAwaitKill);
  EXPECT_EQ(policy.OnLaterSave(), Action::kRequeue);
  EXPECT_EQ(policy.OnLaterSave(), Action::kNothing);
  EXPECT_EQ(policy.OnRequeued(true), Action::kNothing) << "the members stay already";
  EXPECT_EQ(policy.OnSignal(), Action::kLeave);
}

TEST(ExitPolicy, ALaterSaveDoesNotRequeueTwice) {
  ExitPolicy policy = Saving(Preempted());
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kRequeue);
  EXPECT_EQ(policy.OnRequeued(false), Action::kAwaitKill);
  EXPECT_EQ(policy.OnLaterSave(), Action::kNothing);
}

TEST(ExitPolicy, WatchThatIsTooEarlyGoesBackToWatching) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnDeadlineWatch(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause({Cause::kUnknown, 3600, false, ""}, true), Action::kNothing);
  EXPECT_EQ(policy.state(), State::kRunning);
}

TEST(ExitPolicy, JobThatWasRequeuedAlreadyIsSavedAndNotRequeuedAgain) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause({Cause::kRequeued, 12, false, ""}, true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kLeave);
  ExitPolicy unsaved(Settings{}, true);
  (void)unsaved.OnSignal();
  (void)unsaved.OnCause({Cause::kRequeued, 12, false, ""}, true);
  EXPECT_EQ(unsaved.OnFinalSave({}), Action::kAwaitKill);
}

TEST(ExitPolicy, WithoutACheckpointThereIsNoRequeue) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave({}), Action::kAwaitKill);
  EXPECT_EQ(policy.WhyNoRequeue(), "the final save is not durable");
}

TEST(ExitPolicy, JobThatMayNotBeRequeuedIsSavedAndToldWhy) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(false), true);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kAwaitKill);
  EXPECT_EQ(policy.WhyNoRequeue(), "PreemptMode=CANCEL");
}

TEST(ExitPolicy, LastLifeIsNotRequeued) {
  ExitPolicy policy(Settings{}, false);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kAwaitKill);
  EXPECT_EQ(policy.WhyNoRequeue(), "--checkpoint-max-lives=100 allows no more lives");
}

TEST(ExitPolicy, TwoLivesWithoutAStepAreNotFollowedByAThird) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave({.durable = true, .moved_on = false}), Action::kAwaitKill);
  EXPECT_NE(policy.WhyNoRequeue().find("made no new step"), std::string::npos);
}

TEST(ExitPolicy, InteractiveJobWaitsUnlessItIsToldOtherwise) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), false);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kAwaitKill);
}

TEST(ExitPolicy, ExitLeavesWithTheUsersCodeAfterTheSave) {
  Settings settings;
  settings.after = After::kExit;
  ExitPolicy policy(settings, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(kDurable), Action::kExit);
}

TEST(ExitPolicy, TriggerThatTheUserLeftOutSavesNothing) {
  Settings settings;
  settings.on = kTriggerInterval;
  ExitPolicy policy(settings, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kAwaitKill);
}

}  // namespace
}  // namespace cairn
