// Boundary: what one member does at its boundaries: it counts cairn_step calls, and carries out what its side of the agreement (agreement/member.h)
// decides: hold the program, take the snapshot, drain it.
//
// Threads.
//   application   Pass, Arrive, Fence, QuietBegin, QuietEnd, Save, Wait, Finish: one at a time, as cairn.h demands
//   loop          OnMessage, OnTrigger, OnLeaderGone, Hurry, Sample, progress
//   drainers      its own, one for each slot: drains. One may stay in a drain for as long as the file system hangs, and holds up no other
//   copier        its own: snapshots of a quiet member, and the end of late copies. Nothing of it touches the directory
// They meet under mutex_: the member machine and the saver are guarded by it. Pass takes no lock.
//
// Late copies (cairn_fence). Where the saver leaves copies under way, the application goes on and the copier waits for them; only then is the
// snapshot complete for the agreement. Meanwhile the next count is stored in `armed`, which nobody else arms before the snapshot is over: so the
// next cairn_step comes to Arrive, and waits there as Fence does. Every other call of the application that enters here waits first, too; so the
// member machine never sees one of them between the two.
#ifndef CAIRN_RUNTIME_SESSION_BOUNDARY_H_
#define CAIRN_RUNTIME_SESSION_BOUNDARY_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/agreement/member.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/metrics.h"
#include "runtime/session/partner.h"
#include "runtime/session/saver.h"
#include "runtime/session/worker.h"

namespace cairn {

class Boundary {
 public:
  using Send =
      std::function<void(uint16_t type, std::string payload)>;  // to the leader; any thread, never blocks

  // `boot` and `log` outlive it.
  Boundary(const Bootstrap& boot, Log* log, Send send);

  // In cairn_restore: what this member saves with, or why it cannot; where its partner keeps copies, or nothing. Again: instead.
  void Equip(Result<std::unique_ptr<Saver>> saver, std::unique_ptr<PartnerLink> partner);
  // The restore is over. The count is set before any later message is handled: a Poll must not find that of before the restore.
  void SetCount(int64_t count);
  void SetLabel(int64_t label) { label_ = label; }
  void OnCopy(std::function<void()> collect) { collect_ = std::move(collect); }  // see cairn_on_copy
  // From inside `collect`: fails the snapshot that it is called for.
  void RefuseCopy(const std::string& why) {
    refused_ = Status(Code::kUnavailable, "the program could not put its state together: " + why);
  }

  // One more step is done. True: the boundary is one that was agreed on, and Arrive follows.
  bool Pass(int64_t label) {
    const int64_t count = count_.load(std::memory_order_relaxed) + 1;
    label_ = label;
    count_.store(count, std::memory_order_seq_cst);
    return armed_.load(std::memory_order_seq_cst) == count;
  }
  void Arrive();  // returns when the program may go on
  bool copies_late() const { return late_.load(std::memory_order_relaxed); }  // the application's question
  void Fence();  // returns when no copies are late
  // A step of CAIRN_REHEARSAL: each member waits at it, so that the save is of this very step and not of one a little later. After Pass, in place of
  // Arrive. True: it was the last one.
  bool IsRehearsed() const;
  bool Rehearse();
  void QuietBegin();
  void QuietEnd();
  void Save(const std::string& tag);
  Status SetMetric(const std::string& name, double value);
  Status Wait(std::optional<std::chrono::milliseconds> bound);
  Status Finish();  // the program has come to its end

  void OnMessage(agreement::ToMember message);
  void OnTrigger(Trigger reason, Nanoseconds time_left, const std::string& tag);
  void OnLeaderGone(const std::string& why);
  bool finished();  // the run has come to its end: nothing is left to do in this life
  void Hurry();     // this drain and all later ones
  void Sample();    // twice a second: the step period, and the drain's progress for the leader
  agreement::Progress progress() const { return {count_.load(std::memory_order_seq_cst), period_}; }

  // The process leaves; any thread but the drainers and the copier. Waits, bounded, for what is staged to be durable, then cancels what is still being written.
  void DrainOut(std::chrono::milliseconds bound);
  bool IsIdle(std::chrono::milliseconds bound);
  void EndThreads();  // after IsIdle

 private:
  static constexpr int64_t kNever = -1;
  using Lock = std::unique_lock<std::mutex>;

  int64_t Armed(
      int64_t agreed) const;  // the boundary that was agreed on, or a step of CAIRN_REHEARSAL before it
  void AwaitLateCopies(Lock& lock);
  void Hold(Lock& lock);  // until the member machine lets the application go
  void Carry(agreement::MemberActions actions, Lock& lock);
  void AwaitSlot(agreement::Mode mode, Lock& lock);
  void TakeSnapshot(const agreement::TakeSnapshot& order, Lock& lock);
  void FinishSnapshot(agreement::SaveId id, Status status, Lock& lock);
  void Drain(const agreement::StartDrain& order);
  void End(const agreement::Ended& ended);
  void SayDrain();  // to the leader: how far it is; under mutex_
  void SayStuck();  // in the log, once until the drain has returned; under mutex_

  const Bootstrap& boot_;
  Log* const log_;
  const Send send_;

  // The application's.
  int64_t label_ = 0;
  bool quiet_ = false;
  std::function<void()> collect_;
  Status refused_;  // by it; of the thread that calls it

  // Shared without a lock.
  std::atomic<int64_t> count_{0};       // of Pass calls, over all lives
  std::atomic<int64_t> armed_{kNever};  // the boundary that was agreed on, or the one after late copies
  std::atomic<bool> late_{false};       // copies are under way; written under mutex_

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  agreement::Member member_;
  std::unique_ptr<Saver> saver_;
  Metrics metrics_;
  Status saver_status_{Code::kUnavailable, "cairn_restore has not been called"};
  std::unique_ptr<PartnerLink> partner_;             // where partners keep copies; set once, in Equip
  std::optional<agreement::TakeSnapshot> snapshot_;  // for the held application to take
  std::optional<Status> closed_;
  bool said_stuck_ = false;

  // Loop thread.
  int64_t sampled_count_ = 0;
  std::chrono::steady_clock::time_point sampled_at_{};
  Nanoseconds period_{};
  std::chrono::steady_clock::time_point drain_said_{};

  std::vector<std::unique_ptr<Worker>> drainers_;  // by slot; all are there after Equip
  Worker copier_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_BOUNDARY_H_
