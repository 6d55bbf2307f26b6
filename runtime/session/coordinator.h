// Coordinator: what the leader decides for all members: when to save, whether a save counts, and how the job ends. Lives in the process of
// rank 0, beside that rank's own member. Loop thread only; what blocks is done by the keeper on the clerk's thread.
#ifndef CAIRN_RUNTIME_SESSION_COORDINATOR_H_
#define CAIRN_RUNTIME_SESSION_COORDINATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "runtime/agreement/leader.h"
#include "runtime/agreement/member.h"
#include "runtime/control/fabric.h"
#include "runtime/control/loop.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/control_desk.h"
#include "runtime/session/drain_meter.h"
#include "runtime/session/ending.h"
#include "runtime/session/host_link.h"
#include "runtime/session/keeper.h"
#include "runtime/session/mailbox.h"
#include "runtime/session/protocol.h"
#include "runtime/session/save_costs.h"
#include "runtime/session/save_interval.h"
#include "runtime/session/worker.h"

namespace cairn {

class Coordinator {
 public:
  struct Links {  // all outlive the coordinator
    Loop* loop = nullptr;
    Fabric* fabric = nullptr;
    Log* log = nullptr;
    Mailbox* mailbox = nullptr;
    // A request of rank 0's own member; tag: "" = none.
    std::function<void(Trigger reason, Nanoseconds time_left, const std::string& tag)> trigger;
    std::function<agreement::Progress()> progress;  // of rank 0
  };

  Coordinator(const Bootstrap& boot, const std::string& session, Links links);
  ~Coordinator();  // after JoinClerk

  // The leader's part of cairn_open and cairn_restore. Each ends in a message to all members.
  void LeadOpen();
  void LeadRestore(const MatchOptions& match);

  // What arrives.
  void OnToLeader(int from, const std::string& payload);
  void OnSignal(int from, const SignalSeen& signal);
  // SIGINT reached this process: writes so into the journal, bounded, then calls back on the loop.
  void OnInterrupt(std::function<void()> done);
  void OnDrainSeen(int from, const DrainSeen& seen) { drain_.OnSeen(from, seen); }
  void OnPartnerHeld(const PartnerHeld& held);
  void OnPeer(int rank, PeerState state, const std::string& why);
  void OnHost(uint16_t type, const std::string& payload);

  // The session is over: leaves the directory in good order, then calls back on the loop.
  void Close(std::function<void()> done);

  // Any thread but the loop's: waits until the clerk has done what it was given; it takes no more.
  void JoinClerk() { clerk_.Join(); }
  // The same threads: whether the clerk has done what it was given, waiting for at most `bound`.
  bool ClerkIsIdle(std::chrono::milliseconds bound) { return clerk_.IsIdle(bound); }

 private:
  static constexpr int kAllRanks = -1;
  void SendOrder(int rank, const Order& order);
  void StartSaving(const Order& order);
  void Carry(agreement::LeaderActions actions);
  void TellSaved(int64_t step);
  void OnSaveEnded(const agreement::SaveEnded& ended);
  void Interrupted();
  void ScheduleTick();
  void ScheduleInterval();
  void OnInterval();
  void MeasureIdle();
  void TellProgress();
  Ending::Stand Stand() const;
  // Requests are heard: the restore is over, and neither the run nor saving in this life.
  bool can_save() const { return leader_ && leader_->state() != agreement::LeaderState::kClosed; }
  std::string WhyNoSave() const;  // on request; "" = it can be asked for
  std::string WhyNoResize() const;
  std::string StatusJson() const;
  void OnClerk(std::function<void(Keeper& keeper)> fn);
  void OnLoop(std::function<void()> fn) { links_.loop->Post(std::move(fn)); }

  const Bootstrap& boot_;
  const std::string session_;
  const Links links_;
  HostLink host_;
  std::optional<agreement::Leader> leader_;  // from the end of the restore on
  Timer tick_, interval_timer_, interrupt_timer_, progress_timer_;
  SaveInterval interval_;
  SaveCosts costs_;
  std::chrono::steady_clock::time_point asked_{};  // when the save under way was begun
  int64_t told_count_ = 0;                         // of steps, that the journal knows
  bool idle_ = true;                               // no save was under way at the last look
  DrainMeter drain_;
  ControlDesk desk_;
  struct Seen {  // the latest signal of a kind
    std::chrono::steady_clock::time_point first{};
    std::set<int> ranks;  // that it reached so far
  };
  std::map<int, Seen> seen_;  // by signal
  // The newest snapshot that all have staged, and that which the partners hold.
  struct Tier {
    uint64_t save_id = 0;
    int64_t step = 0;  // 0 = none yet
  };
  Tier local_, partner_;
  uint64_t held_id_ = 0;
  std::set<uint32_t> held_;  // of the save held_id_: the ranks of which a partner has a copy
  void NoteTiers();
  std::optional<SaveReport> last_save_;
  std::string said_save_;  // the name of the save that the user was last told of
  std::string last_failure_;
  int64_t restored_step_ = 0;
  std::optional<int64_t> restored_before_;  // the step at which the life before this one began
  CopyState copies_;                        // as the host process tells
  std::function<void()> on_interrupt_;      // until the journal tells of it, or the time for that is over
  bool lost_ = false;                       // a rank is gone
  bool next_life_ = false;  // so `cairn run` starts another life, when this one has finished its save
  bool closed_ = false;
  Ending ending_;
  Keeper keeper_;  // the clerk's, once it runs
  Worker clerk_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_COORDINATOR_H_
