// ExitPolicy: what becomes of the job once something wants it to end. Pure; the leader feeds it on its loop thread and carries out what it
// returns. (What the record says of a cause: runtime/slurm/cause.h.)
//
//  1. A SIGTERM at any member, or the deadline watch, reaches the leader → kAskCause. So does each SIGTERM until the final save is over: it may
//     be a cancel. (One that reaches several members is one: it is the leader's matter to count so.)
//  2. The host process answers:
//       cancelled              → kLeave: nothing is saved, SIGTERM's own effect everywhere, at once
//       requeued already       → kFinalSave, then kLeave: the sooner, the less is computed in vain. Not durable: kAwaitKill
//       preempted, time limit  → kFinalSave, then as `after`: requeue (where it may) → kRequeue → kAwaitKill;
//                                wait → kAwaitKill; exit → kExit
//       unknown                → from a signal: kFinalSave within the bound, then kLeave, never a requeue. From the watch: nothing
//     When it is unknown because Slurm did not answer, it is asked again and again, during the save and after it, until it answers or the
//     grace time is over (OnGraceOver); its answer decides.
//     A cause that the user's `on` leaves out skips the save; the rest is the same, but a job is never requeued without a durable save.
//  3. The final save ended, durable or not. Not durable and there is time → kTryAgain. Otherwise the newest durable checkpoint stands, and a
//     job may be requeued to go on from it: after a time limit only from one that this life has made, since the next life would come
//     no further; after a preemption from any. No checkpoint → no requeue; one that becomes durable later makes up for it.
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
    kTryAgain,   // request it once more, after a pause
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

  // How the final save ended, and what stands without it.
  struct FinalSave {
    bool durable = false;
    bool time_left = false;  // for another try
    enum class Newest {
      kNone,
      kRestored,
      kOwn
    } newest = Newest::kNone;  // durable checkpoint: of this life, or that it began from
    bool moved_on = true;      // this life or the one before it made one newer than the one at which it began
  };

  // may_live_again: false = the limit of lives is reached, so this one is not requeued.
  ExitPolicy(const Settings& settings, bool may_live_again)
      : settings_(settings), may_live_again_(may_live_again) {}

  Action OnSignal();  // a SIGTERM reached the members
  Action OnDeadlineWatch();
  // batch: what `after` = auto means, requeue in a batch job, else wait.
  Action OnCause(const Verdict& verdict, bool batch);
  Action OnFinalSave(const FinalSave& save);
  Action OnLaterSave();  // another save became durable
  Action OnRequeued(bool requeued);
  Action OnGraceOver();  // Slurm will not be asked again
  // `cairn run` is to start another life: a save for a resize is durable, or a rank is lost. Nothing where the job is being ended anyway.
  Action OnLifeOver();

  State state() const { return state_; }
  const Verdict& verdict() const { return verdict_; }
  bool requeued() const { return requeued_; }
  // Slurm was silent, and should be asked again.
  bool wants_answer() const {
    return (state_ == State::kSaving || state_ == State::kAskingAgain) && !verdict_.answered;
  }
  // The job is requeued without its final save: it goes on from an older checkpoint.
  bool falls_back() const { return state_ == State::kRequeueing && !save_.durable; }
  // Why there will be no requeue although the cause is one that Cairn requeues after; "" otherwise.
  std::string WhyNoRequeue() const;

 private:
  Action AfterSave();
  bool CanGoOn() const;
  bool MayRequeue() const;
  void Take(const Verdict& verdict, bool batch);

  const Settings settings_;
  const bool may_live_again_;
  State state_ = State::kRunning;
  Verdict verdict_;
  After after_ = After::kWait;
  bool signalled_ = false;  // a SIGTERM came, not only the watch
  FinalSave save_;
  bool requeued_ = false;
  bool requeue_tried_ = false;
  bool stays_ = false;       // the members were told to stay before the requeue
  bool told_to_go_ = false;  // a SIGTERM came during the requeue
};

std::string_view ExitStateName(ExitPolicy::State state);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_EXIT_POLICY_H_
