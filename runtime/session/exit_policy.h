// ExitPolicy: what becomes of the job once something wants it to end. Pure; the leader feeds it on its loop thread and carries out what it
// returns. (What the record says of a cause: runtime/slurm/cause.h.)
//
//  1. A SIGTERM at any member, or the deadline watch, reaches the leader → kAskCause, once; more of them meanwhile change nothing.
//  2. The host process answers:
//       cancelled              → kLeave: nothing is saved, SIGTERM's own effect everywhere, at once
//       requeued already       → kFinalSave, then kAwaitKill
//       preempted, time limit  → kFinalSave, then as `after`: requeue (where it may) → kRequeue → kAwaitKill;
//                                wait → kAwaitKill; exit → kExit
//       unknown                → from a signal: kFinalSave within the bound, then kLeave, never a requeue. From the watch: nothing
//     When it was unknown because Slurm did not answer, it is asked once more after the save, and that answer decides.
//     A cause that the user's `on` leaves out skips the save; the rest is the same, but a job is never requeued without a durable save.
//  3. The final save ended, durable or not. Not durable → never requeue; the last committed step stands.
//  4. kAwaitKill: the program's own handler, if it has one, runs now; the ranks stay until Slurm ends them. A further SIGTERM (one that
//     came during the requeue counts) → kLeave.
//  5. A second cause replaces a first one only upwards: cancelled while saving → kLeave at once.
#ifndef CAIRN_RUNTIME_SESSION_EXIT_POLICY_H_
#define CAIRN_RUNTIME_SESSION_EXIT_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/settings.h"
#include "runtime/slurm/cause.h"

namespace cairn {

class ExitPolicy {
 public:
  enum class State { kRunning, kAsking, kSaving, kAskingAgain, kRequeueing, kAwaitingKill, kLeft };

  enum class Action {
    kNothing,
    kAskCause,
    kFinalSave,  // request a save; verdict().seconds_left bounds it
    kRequeue,
    kAwaitKill,  // tell the members: stay, and run the program's own handler
    kLeave,      // tell the members: SIGTERM's own effect, now
    kExit,       // tell the members: leave with the user's code
  };

  // What the host process said, and what follows from it.
  struct Verdict {
    Cause cause = Cause::kUnknown;
    std::optional<int64_t> seconds_left;
    bool may_requeue = false;
    std::string why;
    bool answered = true;  // by Slurm
  };

  // may_live_again: false = the limit of lives is reached, so this one is not requeued.
  ExitPolicy(const Settings& settings, bool may_live_again)
      : settings_(settings), may_live_again_(may_live_again) {}

  Action OnSignal();  // a SIGTERM reached a member
  Action OnDeadlineWatch();
  // batch: what `after` = auto means, requeue in a batch job, else wait.
  Action OnCause(const Verdict& verdict, bool batch);
  // moved_on: this life or the one before it got beyond the step at which it began.
  Action OnFinalSave(bool durable, bool moved_on);
  Action OnRequeued(bool requeued);

  State state() const { return state_; }
  const Verdict& verdict() const { return verdict_; }
  bool requeued() const { return requeued_; }
  // Why there will be no requeue although the cause is one that Cairn requeues after; "" otherwise.
  std::string WhyNoRequeue() const;

 private:
  Action AfterSave(bool durable, bool moved_on);
  void Take(const Verdict& verdict, bool batch);

  const Settings settings_;
  const bool may_live_again_;
  State state_ = State::kRunning;
  Verdict verdict_;
  After after_ = After::kWait;
  bool signalled_ = false;  // a SIGTERM came, not only the watch
  bool durable_ = false;
  bool moved_on_ = true;
  bool requeued_ = false;
  bool asked_again_ = false;
  bool told_to_go_ = false;  // a SIGTERM came during the requeue
};

std::string_view ExitStateName(ExitPolicy::State state);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_EXIT_POLICY_H_
