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
      return "asking Slurm again";
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
  signalled_ = true;
  switch (state_) {
    case State::kRunning:
      state_ = State::kAsking;
      return Action::kAskCause;
    case State::kAwaitingKill:
      state_ = State::kLeft;
      return Action::kLeave;
    // What was asked before it came does not know of a cancel.
    case State::kAsking:
    case State::kSaving:
      return Action::kAskCause;
    // Slurm's own, which may overtake the answer to the requeue that caused it.
    case State::kRequeueing:
      told_to_go_ = true;
      return Action::kNothing;
    case State::kAskingAgain:  // soon, and until there is an answer
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
  if (wants_answer()) {
    if (!verdict.answered) return Action::kNothing;
    Take(verdict, batch);
    return state_ == State::kAskingAgain ? AfterSave() : Action::kNothing;
  }
  if (state_ != State::kAsking) return Action::kNothing;
  if (verdict.cause == Cause::kUnknown && !signalled_) {  // the watch was early: the limit was moved
    state_ = State::kRunning;
    return Action::kNothing;
  }
  Take(verdict, batch);
  const bool wanted =
      verdict.cause == Cause::kTimeLimit ? settings_.on & kTriggerTimeLimit : settings_.on & kTriggerPreempt;
  if (!wanted) {
    save_ = {};
    return AfterSave();
  }
  state_ = State::kSaving;
  return Action::kFinalSave;
}

void ExitPolicy::Take(const Verdict& verdict, bool batch) {
  verdict_ = verdict;
  after_ = settings_.after != After::kAuto ? settings_.after : batch ? After::kRequeue : After::kWait;
}

ExitPolicy::Action ExitPolicy::OnFinalSave(const FinalSave& save) {
  if (state_ != State::kSaving) return Action::kNothing;
  if (!save.durable && save.time_left) return Action::kTryAgain;
  save_ = save;
  return AfterSave();
}

ExitPolicy::Action ExitPolicy::OnLaterSave() {
  if (state_ != State::kAwaitingKill || requeue_tried_ || save_.durable) return Action::kNothing;
  save_.durable = save_.moved_on = true;
  if (!MayRequeue()) return Action::kNothing;
  state_ = State::kRequeueing;
  requeue_tried_ = stays_ = true;
  return Action::kRequeue;
}

ExitPolicy::Action ExitPolicy::OnGraceOver() {
  if (state_ != State::kAskingAgain) return Action::kNothing;
  state_ = State::kLeft;
  return Action::kLeave;
}

ExitPolicy::Action ExitPolicy::OnLifeOver() {
  if (state_ != State::kRunning) return Action::kNothing;
  state_ = State::kLeft;
  return Action::kLeave;
}

// Whether the next life has something to go on from.
bool ExitPolicy::CanGoOn() const {
  return save_.durable || save_.newest == FinalSave::Newest::kOwn ||
         (save_.newest == FinalSave::Newest::kRestored && verdict_.cause == Cause::kPreempted);
}

bool ExitPolicy::MayRequeue() const {
  return (verdict_.cause == Cause::kPreempted || verdict_.cause == Cause::kTimeLimit) &&
         after_ == After::kRequeue && CanGoOn() && verdict_.may_requeue && may_live_again_ && save_.moved_on;
}

ExitPolicy::Action ExitPolicy::AfterSave() {
  if (verdict_.cause == Cause::kUnknown && !verdict_.answered &&
      (save_.durable || save_.newest != FinalSave::Newest::kNone)) {
    state_ = State::kAskingAgain;
    return Action::kNothing;
  }
  if (verdict_.cause == Cause::kUnknown || (verdict_.cause == Cause::kRequeued && save_.durable)) {
    state_ = State::kLeft;
    return Action::kLeave;
  }
  if (verdict_.cause != Cause::kRequeued && after_ == After::kExit) {
    state_ = State::kLeft;
    return Action::kExit;
  }
  if (MayRequeue()) {
    state_ = State::kRequeueing;
    requeue_tried_ = true;
    return Action::kRequeue;
  }
  state_ = State::kAwaitingKill;
  return Action::kAwaitKill;
}

ExitPolicy::Action ExitPolicy::OnRequeued(bool requeued) {
  if (state_ != State::kRequeueing) return Action::kNothing;
  requeued_ = requeued;
  state_ = requeued && told_to_go_ ? State::kLeft : State::kAwaitingKill;
  if (state_ == State::kLeft) return Action::kLeave;
  return stays_ ? Action::kNothing : Action::kAwaitKill;
}

std::string ExitPolicy::WhyNoRequeue() const {
  if (verdict_.cause != Cause::kPreempted && verdict_.cause != Cause::kTimeLimit) return "";
  if (settings_.after == After::kAuto && after_ != After::kRequeue) return "Slurm requeues batch jobs alone";
  if (after_ != After::kRequeue) return "--checkpoint-after is not requeue";
  if (!CanGoOn()) return "the final save is not durable";
  if (!verdict_.may_requeue) return verdict_.why;
  if (!may_live_again_)
    return "--checkpoint-max-lives=" + std::to_string(settings_.max_lives) + " allows no more lives";
  if (!save_.moved_on)
    return "this life and the one before made no new step, and another would not either: `cairn why` tells "
           "how they ended";
  return "";
}

}  // namespace cairn
