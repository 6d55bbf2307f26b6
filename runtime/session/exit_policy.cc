#include "runtime/session/exit_policy.h"

namespace cairn {

std::string_view ExitStateName(ExitPolicy::State state) {
  switch (state) {
    case ExitPolicy::State::kRunning:
      return "running";
    case ExitPolicy::State::kAsking:
      return "asking Slurm";
    case ExitPolicy::State::kSaving:
      return "saving for the last time";
    case ExitPolicy::State::kAskingAgain:
      return "asking Slurm once more";
    case ExitPolicy::State::kRequeueing:
      return "requeueing";
    case ExitPolicy::State::kAwaitingKill:
      return "waiting for the end";
    case ExitPolicy::State::kLeft:
      return "left";
  }
  return "?";
}

ExitPolicy::Action ExitPolicy::OnSignal() {
  const bool first = !signalled_;
  signalled_ = true;
  switch (state_) {
    case State::kRunning:
      state_ = State::kAsking;
      return Action::kAskCause;
    case State::kAwaitingKill:
      state_ = State::kLeft;
      return Action::kLeave;
    // The watch began the final save and now comes a signal: it may be a cancel.
    case State::kSaving:
      return first ? Action::kAskCause : Action::kNothing;
    // Slurm's own, which may overtake the answer to the requeue that caused it.
    case State::kRequeueing:
      told_to_go_ = true;
      return Action::kNothing;
    case State::kAsking:
    case State::kAskingAgain:
    case State::kLeft:
      return Action::kNothing;
  }
  return Action::kNothing;
}

ExitPolicy::Action ExitPolicy::OnDeadlineWatch() {
  if (state_ != State::kRunning) return Action::kNothing;
  state_ = State::kAsking;
  return Action::kAskCause;
}

ExitPolicy::Action ExitPolicy::OnCause(const Verdict& verdict, bool batch) {
  if (verdict.cause == Cause::kCancelled && state_ != State::kLeft) {
    // While our own requeue is on its way the record passes through states that look like a cancel.
    if (state_ == State::kRequeueing || requeued_) return Action::kNothing;
    verdict_ = verdict;
    state_ = State::kLeft;
    return Action::kLeave;
  }
  if (state_ == State::kAskingAgain) {
    Take(verdict, batch);
    return AfterSave(durable_, moved_on_);
  }
  if (state_ != State::kAsking) return Action::kNothing;
  if (verdict.cause == Cause::kUnknown && !signalled_) {  // the watch was early: the limit was moved
    state_ = State::kRunning;
    return Action::kNothing;
  }
  Take(verdict, batch);
  const bool wanted =
      verdict.cause == Cause::kTimeLimit ? settings_.on & kTriggerTimeLimit : settings_.on & kTriggerPreempt;
  if (!wanted) return AfterSave(false, true);
  state_ = State::kSaving;
  return Action::kFinalSave;
}

void ExitPolicy::Take(const Verdict& verdict, bool batch) {
  verdict_ = verdict;
  after_ = settings_.after != After::kAuto ? settings_.after : batch ? After::kRequeue : After::kWait;
}

ExitPolicy::Action ExitPolicy::OnFinalSave(bool durable, bool moved_on) {
  return state_ == State::kSaving ? AfterSave(durable, moved_on) : Action::kNothing;
}

ExitPolicy::Action ExitPolicy::AfterSave(bool durable, bool moved_on) {
  durable_ = durable;
  moved_on_ = moved_on;
  if (verdict_.cause == Cause::kUnknown && !verdict_.answered && durable && !asked_again_) {
    asked_again_ = true;
    state_ = State::kAskingAgain;
    return Action::kAskCause;
  }
  if (verdict_.cause == Cause::kUnknown) {
    state_ = State::kLeft;
    return Action::kLeave;
  }
  if (verdict_.cause != Cause::kRequeued && after_ == After::kExit) {
    state_ = State::kLeft;
    return Action::kExit;
  }
  if (verdict_.cause != Cause::kRequeued && after_ == After::kRequeue && durable && verdict_.may_requeue &&
      may_live_again_ && moved_on_) {
    state_ = State::kRequeueing;
    return Action::kRequeue;
  }
  state_ = State::kAwaitingKill;
  return Action::kAwaitKill;
}

ExitPolicy::Action ExitPolicy::OnRequeued(bool requeued) {
  if (state_ != State::kRequeueing) return Action::kNothing;
  requeued_ = requeued;
  state_ = requeued && told_to_go_ ? State::kLeft : State::kAwaitingKill;
  return state_ == State::kLeft ? Action::kLeave : Action::kAwaitKill;
}

std::string ExitPolicy::WhyNoRequeue() const {
  if (verdict_.cause != Cause::kPreempted && verdict_.cause != Cause::kTimeLimit) return "";
  if (after_ != After::kRequeue) return "checkpoint-after is not requeue";
  if (!durable_) return "the final save is not durable";
  if (!verdict_.may_requeue) return verdict_.why;
  if (!may_live_again_) return "the limit of lives is reached (checkpoint-max-lives)";
  if (!moved_on_) return "two lives ended at the step at which they began: a requeue would go on like that";
  return "";
}

}  // namespace cairn
