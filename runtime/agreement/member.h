// Member: the side of the agreement that every rank has, rank 0 too. Pure: (state, event, now) → state, actions.
//
// runtime/agreement/leader.h holds the protocol. This machine says when the application's thread is held, when the snapshot is taken, and
// what becomes of it.
//
// Threads. Two threads enter: the application's (cairn_step at an armed boundary, quiet, finalize) and the loop's (messages). Every call
// below, and the carrying out of the actions it returns, happens under one mutex of the session; only the copying of a snapshot does not.
//
// The unarmed step takes no lock:
//
//     count.store(c, seq_cst);  if (armed.load(seq_cst) == c) → lock; OnBoundary(c, label, now); Hold
//
// and Arm is carried out as
//
//     armed.store(T, seq_cst);  OnArmed(count.load(seq_cst))
//
// Each side stores, then loads what the other one stores (Dekker). In the single order of sequentially consistent operations one of the two
// stores is first, so the other side's load sees it: either OnArmed is told c ≥ T and refuses, or cairn_step sees T and comes in. Both may
// happen at once: then OnArmed, which has the lock, refuses and disarms, and OnBoundary finds nothing to do. Neither cannot happen.
//
// How the session holds the application's thread (after OnBoundary, OnQuietEnd, OnFinalized):
//
//     while (member.holds_application()) {
//       if (a TakeSnapshot is at hand) { unlock; copy; lock; carry out OnSnapshotted(id, status, now); }
//       else if (the condition variable timed out at member.wait_until()) carry out OnWaitExpired(now);
//     }
//
// and the loop's thread notifies the condition variable after each call. A copy of what stays as it is for longer may be left to another thread:
// OnLeft then lets the application go, which the session holds at its next call at the latest, and OnSnapshotted follows. Under TakeSnapshot with Mode::kQuiet the application is not held:
// a thread of the session copies, and OnQuietEnd holds the application until that is done. With kRunning and kFinal it is held, and may
// copy itself.
#ifndef CAIRN_RUNTIME_AGREEMENT_MEMBER_H_
#define CAIRN_RUNTIME_AGREEMENT_MEMBER_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/agreement/messages.h"

namespace cairn::agreement {

// X(enumerator, name in logs, meaning)
#define CAIRN_MEMBER_STATES(X)                                                      \
  X(kIdle, "idle", "no save is under way here")                                     \
  X(kArming, "arming", "T is being stored; OnArmed decides")                        \
  X(kArmed, "armed", "short of T, no Go yet")                                       \
  X(kWaiting, "waiting", "at T, no Go yet")                                         \
  X(kCleared, "cleared", "short of T, with Go")                                     \
  X(kSnapshotting, "snapshotting", "the snapshot is being taken")                   \
  X(kDiscarding, "discarding", "the snapshot is being taken, the save was dropped") \
  X(kStaged, "staged", "the snapshot is complete here")                             \
  X(kDraining, "draining", "complete everywhere, the files are being written")      \
  X(kRecorded, "recorded", "the files are durable, the commit is not known")        \
  X(kClosed, "closed", "no more saves in this life")

enum class MemberState {
#define X(enumerator, name, meaning) enumerator,
  CAIRN_MEMBER_STATES(X)
#undef X
};
std::string_view MemberStateName(MemberState state);

// What became of a snapshot, and so what its slot is worth.
enum class Outcome {
  kCommitted,  // durable
  kLocal,  // not known to be durable; every member has (or may have) staged, so the slot may serve a restart
  kDropped,  // worthless
};

// ---- what the session must do ----

struct Send {  // send to the leader
  ToLeader message;
};
struct Arm {  // store the boundary in `armed`, then load `count` and carry out OnArmed(count)
  int64_t boundary = 0;
};
struct Disarm {};  // store "never" in `armed`
// Copy the state into a free slot; then OnSnapshotted. The state stands still until then.
struct TakeSnapshot {
  SaveId id = 0;
  int64_t boundary = 0;
  Mode mode = Mode::kRunning;  // who may copy: see the top
};
struct StartDrain {  // write the slot's files into the attempt's directory in the background; then OnDrained
  SaveId id = 0;
  std::string attempt;
};
// Comes once for every TakeSnapshot: stop the slot's drain, and free or keep the slot as the outcome says.
struct Ended {
  SaveId id = 0;
  Outcome outcome = Outcome::kDropped;
  std::string why;  // when not committed
};
struct Answered {  // a save that this member asked for is over
  Status status;
};
struct Closed {  // no more saves in this life; OK when nothing went wrong at the end
  Status status;
};
using MemberAction = std::variant<Send, Arm, Disarm, TakeSnapshot, StartDrain, Ended, Answered, Closed>;
using MemberActions = std::vector<MemberAction>;

struct MemberOptions {
  Nanoseconds boundary_wait = std::chrono::seconds(2);  // at T without Go
};

// The application's progress, read by the loop's thread from what cairn_step publishes.
struct Progress {
  int64_t count = 0;
  Nanoseconds period{};  // between two steps lately; 0 = not known
};

class Member {
 public:
  explicit Member(const MemberOptions& options) : options_(options) {}

  // Application's thread.
  MemberActions OnBoundary(int64_t count, int64_t label, TimePoint now);  // cairn_step saw armed == count
  MemberActions OnQuietBegin(int64_t count,
                             int64_t label);  // count and label of the last cairn_step; not nested
  MemberActions OnQuietEnd(TimePoint now);
  MemberActions OnWait();  // in quiet: from now on at_rest() waits for all other members, too
  // Once, outside quiet; held until Closed. stateless: a snapshot would fail.
  MemberActions OnFinalized(int64_t count, int64_t label, bool stateless = false);
  MemberActions OnWaitExpired(TimePoint now);  // wait_until() has passed; harmless when early or late

  // Loop's thread.
  MemberActions OnMessage(ToMember message, Progress progress, TimePoint now);
  MemberActions OnLeaderGone(std::string why);

  // Any thread of the session.
  MemberActions OnTrigger(Trigger reason, Nanoseconds time_left, std::string tag);
  MemberActions OnArmed(int64_t count);  // result of Arm
  void OnLeft(
      SaveId id);  // Mode::kRunning: of TakeSnapshot only that is left which the application does not disturb
  MemberActions OnSnapshotted(SaveId id, Status status);           // result of TakeSnapshot
  MemberActions OnDrained(SaveId id, Result<std::string> record);  // result of StartDrain

  // The thread inside cairn_step, cairn_quiet_end or cairn_finalize may not return.
  bool holds_application() const;
  // When to call OnWaitExpired while it is held; nothing = never.
  std::optional<TimePoint> wait_until() const;
  // A snapshot of this member is on its way to be durable: what a process that exits waits for.
  bool has_snapshot() const;
  // Nor is a request of this member unanswered, or a wait (OnWait): what cairn_wait waits for.
  bool at_rest() const;
  MemberState state() const { return state_; }

 private:
  enum class Event : int;
  struct Input;
  struct Row;
  using Handler = void (Member::*)(Input&);
  static const Row kTransitions[];

  // The handlers of the table in member.cc.
  void Ignore(Input&) {}
  void TellCount(Input& in);
  void TellCountLater(Input& in);
  void StartArming(Input& in);
  void FinishArming(Input& in);
  void Clear(Input& in);
  void ComeToWait(Input& in);
  void TakeSnapshotAtBoundary(Input& in);
  void TakeSnapshotAtGo(Input& in);
  void TellMode(Input& in);
  void FinalizeArmed(Input& in);
  void FinalizeCleared(Input& in);
  void HoldApplication(Input& in);
  void LeaveBoundary(Input& in);
  void FinishSnapshot(Input& in);
  void FinishDiscarding(Input& in);
  void BeginDrain(Input& in);
  void FinishDrain(Input& in);
  void EndCommitted(Input& in);
  void ForgetArmed(Input& in);
  void ForgetWaiting(Input& in);
  void ForgetSnapshotting(Input& in);
  void ForgetStaged(Input& in);
  void ForgetComplete(Input& in);

  void Dispatch(Event event, Input& in);
  MemberActions Run(Event event, Input& in);
  void Rest();
  void Snapshot();
  void End(Outcome outcome, const std::string& why);
  void CloseWith(const Status& status);
  void Emit(ToLeader message) { out_.emplace_back(Send{std::move(message)}); }

  const MemberOptions options_;

  MemberState state_ = MemberState::kIdle;
  Mode mode_ = Mode::kRunning;
  bool syncing_ = false;
  Mode told_mode_ = Mode::kRunning;  // in the latest Count
  int64_t rest_count_ = 0;           // while quiet or final
  int64_t label_ = 0;                // of the last boundary known here
  uint32_t requests_ = 0;            // not answered yet
  bool held_ = false;  // the application is inside cairn_step, cairn_quiet_end or cairn_finalize
  TimePoint held_since_;
  std::optional<Status> closed_;

  // The save under way.
  SaveId id_ = 0;
  int64_t boundary_ = 0;
  TimePoint deadline_;
  std::optional<Count> late_count_;  // answers a Poll once the dropped snapshot is out of the way

  MemberActions out_;
};

}  // namespace cairn::agreement

#endif  // CAIRN_RUNTIME_AGREEMENT_MEMBER_H_
