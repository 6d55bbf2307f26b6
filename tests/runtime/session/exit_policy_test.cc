#include "runtime/session/exit_policy.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using Action = ExitPolicy::Action;
using State = ExitPolicy::State;

ExitPolicy::Verdict Preempted(bool may_requeue = true) {
  return {Cause::kPreempted, 18, may_requeue, "PreemptMode=CANCEL"};
}

TEST(ExitPolicy, PreemptedBatchJobSavesRequeuesAndWaitsForTheKill) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);  // the other ranks' signals
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kRequeue);
  EXPECT_EQ(policy.OnRequeued(true), Action::kAwaitKill);
  EXPECT_EQ(policy.OnSignal(), Action::kLeave);  // Slurm's own, after the requeue
  EXPECT_EQ(policy.state(), State::kLeft);
}

TEST(ExitPolicy, CancelledJobLeavesAtOnceAndNeverComesBack) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kLeave);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kNothing);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
}

TEST(ExitPolicy, CancelDuringTheDeadlineWatchsSaveLeavesAtOnce) {
  ExitPolicy policy(Settings{}, true);
  EXPECT_EQ(policy.OnDeadlineWatch(), Action::kAskCause);
  EXPECT_EQ(policy.OnCause({Cause::kTimeLimit, 20, true, ""}, true), Action::kFinalSave);
  EXPECT_EQ(policy.OnSignal(), Action::kAskCause);  // it may be a cancel
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kLeave);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kNothing);  // never requeued
}

TEST(ExitPolicy, OwnRequeueInFlightIsNotTakenForACancel) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnDeadlineWatch();
  (void)policy.OnCause({Cause::kTimeLimit, 20, true, ""}, true);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kRequeue);
  EXPECT_EQ(policy.OnCause({Cause::kCancelled, std::nullopt, false, ""}, true), Action::kNothing);
  EXPECT_EQ(policy.OnRequeued(true), Action::kAwaitKill);
}

TEST(ExitPolicy, TermThatOvertakesTheRequeuesAnswerIsNotLost) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kRequeue);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
  EXPECT_EQ(policy.OnRequeued(true), Action::kLeave);
}

TEST(ExitPolicy, UnknownCauseSavesAndThenDoesWhatTermDoes) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause({Cause::kUnknown, std::nullopt, false, "no answer"}, true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kLeave);
}

TEST(ExitPolicy, SlurmThatWasSilentIsAskedOnceMoreBeforeTheJobLeavesWithoutARequeue) {
  const ExitPolicy::Verdict silence{Cause::kUnknown, std::nullopt, false, "no answer", false};
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(silence, false);
  ExitPolicy deaf = policy;
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kAskCause);
  EXPECT_EQ(policy.OnSignal(), Action::kNothing);
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kRequeue);
  EXPECT_EQ(deaf.OnFinalSave(true, true), Action::kAskCause);
  EXPECT_EQ(deaf.OnCause(silence, false), Action::kLeave);
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
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kAwaitKill);
}

TEST(ExitPolicy, WithoutADurableSaveThereIsNoRequeue) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave(false, true), Action::kAwaitKill);
  EXPECT_EQ(policy.WhyNoRequeue(), "the final save is not durable");
}

TEST(ExitPolicy, JobThatMayNotBeRequeuedIsSavedAndToldWhy) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(false), true);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kAwaitKill);
  EXPECT_EQ(policy.WhyNoRequeue(), "PreemptMode=CANCEL");
}

TEST(ExitPolicy, LastLifeIsNotRequeued) {
  ExitPolicy policy(Settings{}, false);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kAwaitKill);
  EXPECT_NE(policy.WhyNoRequeue().find("limit of lives"), std::string::npos);
}

TEST(ExitPolicy, TwoLivesWithoutAStepAreNotFollowedByAThird) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), true);
  EXPECT_EQ(policy.OnFinalSave(true, false), Action::kAwaitKill);
  EXPECT_NE(policy.WhyNoRequeue().find("two lives"), std::string::npos);
}

TEST(ExitPolicy, InteractiveJobWaitsUnlessItIsToldOtherwise) {
  ExitPolicy policy(Settings{}, true);
  (void)policy.OnSignal();
  (void)policy.OnCause(Preempted(), false);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kAwaitKill);
}

TEST(ExitPolicy, ExitLeavesWithTheUsersCodeAfterTheSave) {
  Settings settings;
  settings.after = After::kExit;
  ExitPolicy policy(settings, true);
  (void)policy.OnSignal();
  EXPECT_EQ(policy.OnCause(Preempted(), true), Action::kFinalSave);
  EXPECT_EQ(policy.OnFinalSave(true, true), Action::kExit);
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
