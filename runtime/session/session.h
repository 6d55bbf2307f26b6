// Session: one member of a run, from cairn_open to cairn_finalize. The only place that knows the order of the stages.
//
// Threads.
//   application   Open, Add*, Update, Restore, Step, Quiet*, Save, Wait, Finalize: one at a time, as cairn.h demands
//   loop          the fabric, signals, the coordinator on rank 0
//   worker        drains, and snapshots of a quiet member
// The application and the loop meet under mutex_: the member machine and the saver are guarded by it. An unarmed Step takes no lock.
//
// Fork: a child has none of these threads. The C interface (abi.cc) does nothing in one.
#ifndef CAIRN_RUNTIME_SESSION_SESSION_H_
#define CAIRN_RUNTIME_SESSION_SESSION_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/agreement/member.h"
#include "runtime/bulk/address_book.h"
#include "runtime/bulk/breaker.h"
#include "runtime/bulk/identity.h"
#include "runtime/control/fabric.h"
#include "runtime/control/loop.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/coordinator.h"
#include "runtime/session/items.h"
#include "runtime/session/mailbox.h"
#include "runtime/session/partner.h"
#include "runtime/session/saver.h"
#include "runtime/session/signals.h"
#include "runtime/session/state.h"
#include "runtime/session/worker.h"

namespace cairn {

class Session {
 public:
  // Leaves the session as a process that ends does: what is staged is drained, bounded; the others see that this member has left. A session
  // that something still hangs in (a file system, a thread caught in the middle of a call by exit()) is left where it is.
  struct Closer {
    void operator()(Session* session) const;
  };
  using Pointer = std::unique_ptr<Session, Closer>;

  // Collective. An empty pointer: this life runs unprotected, for a reason that was said.
  static Result<Pointer> Open(const std::string& name, const Bootstrap& boot);

  Items& items() { return items_; }
  void SetMatch(MatchOptions match) { match_ = std::move(match); }                 // see cairn_set_load
  const std::vector<ItemDifference>& differences() const { return differences_; }  // of the restore
  // Bytes of a merged blob, of a member of the life that saved; they live as long as the session.
  Status SavedBlob(const std::string& name, int member, std::string_view* bytes) const;
  void OnCopy(std::function<void()> collect) { collect_ = std::move(collect); }  // see cairn_on_copy
  bool restored() const { return started_; }                                     // Restore has returned OK

  Result<cairn_report> Restore();

  void Step(int64_t label) {
    const int64_t count = count_.load(std::memory_order_relaxed) + 1;
    label_ = label;
    count_.store(count, std::memory_order_seq_cst);
    if (armed_.load(std::memory_order_seq_cst) == count) [[unlikely]]
      AtBoundary(count);
  }
  void QuietBegin();
  void QuietEnd();
  void Save(const std::string& tag);
  Status Wait(std::optional<std::chrono::milliseconds> bound);
  Status Finalize();

 private:
  ~Session() = default;

  static constexpr int64_t kNever = -1;
  using Lock = std::unique_lock<std::mutex>;

  // Marks that the application's thread is inside a call that may hold the mutex or wait: exit() from a signal handler in there must not
  // wait for what that thread holds.
  class Inside {
   public:
    explicit Inside(Session* session) : session_(session) { session_->inside_ = true; }
    ~Inside() { session_->inside_ = false; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Session* const session_;
  };

  Session(std::string name, const Bootstrap& boot);
  Status Connect();
  bool Leave();  // false: something hangs, and the session must not be destroyed
  void CountItems(cairn_report* report);
  Status Obey(const Order& order, Outcome* outcome);
  Status Prepare(const Order& order, Outcome* outcome);
  std::unique_ptr<PartnerLink> LinkPartner(const Saver& saver, const Order& order);
  Status Load(const Order& order, Outcome* outcome);
  void EndTransfers(const Status& why);  // for good: a member is gone, or this one leaves
  void AbandonRound(uint32_t round);     // loop
  LocalTierOptions Tier() const;

  void AtBoundary(int64_t count);
  void Hold(Lock& lock);  // until the member machine lets the application go
  void Carry(agreement::MemberActions actions, Lock& lock);
  void TakeSnapshot(const agreement::TakeSnapshot& order, Lock& lock);
  void Drain(const agreement::StartDrain& order);
  void End(const agreement::Ended& ended);

  void OnMessage(int from, uint16_t type, std::string payload);  // loop
  void OnPeer(int rank, PeerState state, const std::string& why);
  void OnSignal();
  void OnLeave(const LeaveOrder& order);
  void SampleProgress();
  void SayDrain();                                        // to the leader: how far it is; under mutex_
  agreement::Progress progress();                         // loop
  void SendToLeader(uint16_t type, std::string payload);  // any thread
  BulkIdentity Bulk(const std::string& purpose) const;    // this member on the data plane
  // Loop: closes the directory, says goodbye to the members, each bounded, then calls `done`. May be called again meanwhile.
  void Depart(std::function<void()> done);
  void Abandon(
      std::function<void()> then);  // loop: the program may still run, but is held and saved no more; departs

  // Constant after Open.
  const std::string name_;
  const Bootstrap boot_;
  std::unique_ptr<Log> log_;
  uint32_t epoch_ = 0;

  // The application's.
  Items items_;
  State state_;  // what all members registered; during the restore
  MatchOptions match_;
  std::vector<ItemDifference> differences_;  // of the checkpoint that was loaded last
  int64_t label_ = 0;
  bool started_ = false;
  bool quiet_ = false;
  std::map<std::string, std::vector<std::string>> saved_blobs_;  // merged ones, by name, then member
  std::function<void()> collect_;

  // Shared without a lock.
  std::atomic<int64_t> count_{0};       // of Step calls, over all lives
  std::atomic<int64_t> armed_{kNever};  // the boundary that was agreed on
  std::atomic<bool> inside_{false};
  Mailbox mailbox_;
  AddressBook addresses_;  // where members take bulk data

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  agreement::Member member_;
  std::unique_ptr<Saver> saver_;
  Status saver_status_{Code::kUnavailable, "cairn_restore has not been called"};
  std::unique_ptr<PartnerLink> partner_;             // where partners keep copies; set once, in Prepare
  std::optional<agreement::TakeSnapshot> snapshot_;  // for the held application to take
  std::shared_ptr<Breaker> transfer_;                // of the present round of loading
  uint32_t abandoned_ = 0;                           // rounds up to this one were given up
  Status transfers_over_;                            // not OK: why no transfer can come to its end any more
  std::optional<Status> closed_;

  // Loop thread.
  int64_t sampled_count_ = 0;
  std::chrono::steady_clock::time_point sampled_at_{};
  Nanoseconds period_{};
  std::chrono::steady_clock::time_point drain_said_{};
  bool leaving_ = false, departed_ = false;
  std::vector<std::function<void()>> on_departed_;

  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Loop> loop_;
  // Live on the loop's thread.
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Coordinator> coordinator_;  // rank 0 only
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<Timer> sampler_;
  std::unique_ptr<Timer> goodbye_;  // bounds the directory's part of Depart
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_SESSION_H_
