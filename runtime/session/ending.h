// Ending: how the job ends: asks Slurm why, has the last save made, and carries out what ExitPolicy decides. Beside the coordinator, on rank
// 0. Loop thread only.
//
// It says two things in the log: the fit line (what a preemption would find; once, and again when that changes class), and with a final save
// the deadline plan (runtime/session/deadline_plan.h).
#ifndef CAIRN_RUNTIME_SESSION_ENDING_H_
#define CAIRN_RUNTIME_SESSION_ENDING_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "runtime/agreement/leader.h"
#include "runtime/control/loop.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/deadline_plan.h"
#include "runtime/session/deadline_watch.h"
#include "runtime/session/exit_policy.h"
#include "runtime/session/host_link.h"
#include "runtime/session/keeper.h"
#include "runtime/session/protocol.h"

namespace cairn {

class Ending {
 public:
  // How saving stands, by the coordinator.
  struct Stand {
    enum class Phase {
      kBefore,  // the restore is not over
      kSaving,
      kLost,  // no more saves: a rank is gone
      kOver,  // the run is at its end
    } phase = Phase::kBefore;
    DeadlineFacts facts;                            // without the time left
    std::optional<std::chrono::nanoseconds> every;  // from one save to the next
    int64_t count = 0;
    int64_t restored_step = 0;  // 0 = nothing was restored
    int64_t newest_step = 0;    // durable, of this life or restored
    bool moved_on = true;       // this life or the one before it made something newer than it began with
  };
  struct Links {  // all outlive this object
    Loop* loop = nullptr;
    HostLink* host = nullptr;
    Log* log = nullptr;
    std::function<Stand()> stand;
    std::function<void(Trigger reason, Nanoseconds left)> save;
    std::function<void(LeaveOrder::Kind kind)> leave;  // to all members
    std::function<void(std::string_view event, const Keeper::Fields& fields)> journal;
    std::function<void(std::function<void()> then)> after_journal;  // when it is written, on the loop
  };

  Ending(const Bootstrap& boot, Links links);

  void Start();      // the restore is over
  void OnSigterm();  // at the members: once for all that it reaches
  void OnSaveEnded(const agreement::SaveEnded& ended);
  // A save for a resize to `nodes` (a number, or a list of names) is durable.
  void OnResize(const std::string& nodes);
  void OnLost();  // under `cairn run`: a rank is gone, and no save is under way any more. Again: nothing
  void Stop();    // the session closes

  ExitPolicy::State state() const { return policy_.state(); }
  const std::string& fit_line() const { return fit_.line; }  // "" = what a preemption leaves is not known

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  std::chrono::milliseconds Notice() const;
  void AskSlurm(std::function<void(const CauseReply& reply)> done);
  void LearnDeadline(const CauseReply& reply);
  void ScheduleWatch();
  void OnWatch();
  void AskCause();
  void OnCause(const CauseReply& reply);
  void AskAgain();
  void SaySettled(const CauseReply& reply, bool asked_again, ExitPolicy::Action action);
  void SayFit();
  void Act(ExitPolicy::Action action);
  void SaveNow();
  ExitPolicy::FinalSave Unsaved(const Stand& stand) const;
  Nanoseconds Pause() const;
  void Requeue();
  void Leave(LeaveOrder::Kind kind);

  const Bootstrap& boot_;
  const Links links_;
  ExitPolicy policy_;
  DeadlineWatch deadline_;
  Timer watch_, ask_, retry_;
  std::optional<Nanoseconds> warning_;  // what a preemption leaves
  Fit fit_;
  TimePoint final_by_;       // what is saved last must be durable by then
  TimePoint grace_over_at_;  // Slurm is not asked beyond it
  int tries_ = 0;            // of the final save
  bool stopped_ = false;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_ENDING_H_
