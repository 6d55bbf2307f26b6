// Session: one member of a run, from cairn_open to cairn_finalize. It owns what a member consists of and brings it together: what the program
// registers (Items), its part of the restore (RestoreShare), what it does at its boundaries (Boundary), the line to the other members (Fabric) and,
// on rank 0, what decides for all (Coordinator).
//
// Threads.
//   application   Open, items, SavedBlob, OnCopy, RefuseCopy, Restore, Step, Fence, Quiet*, Save, Wait, Finalize: one at a time, as cairn.h demands
//   loop          the fabric, signals, the coordinator on rank 0
// An unarmed Step takes no lock.
//
// Fork: a child has none of these threads. The C interface (abi.cc) does nothing in one.
#ifndef CAIRN_RUNTIME_SESSION_SESSION_H_
#define CAIRN_RUNTIME_SESSION_SESSION_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bulk/address_book.h"
#include "runtime/control/fabric.h"
#include "runtime/control/loop.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/boundary.h"
#include "runtime/session/coordinator.h"
#include "runtime/session/items.h"
#include "runtime/session/mailbox.h"
#include "runtime/session/restore_share.h"
#include "runtime/session/signals.h"

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
  void SetMatch(MatchOptions match) { restore_.SetMatch(std::move(match)); }  // see cairn_set_load
  void SetPlanner(const cairn_load_planner& calls) { restore_.SetPlanner(calls); }
  const std::vector<ItemDifference>& differences() const { return restore_.differences(); }
  // Bytes of a merged blob, of a member of the life that saved; they live as long as the session.
  Status SavedBlob(const std::string& name, int member, std::string_view* bytes) const {
    return restore_.SavedBlob(name, member, bytes);
  }
  void OnCopy(std::function<void()> collect) { boundary_.OnCopy(std::move(collect)); }
  void RefuseCopy(const std::string& why) { boundary_.RefuseCopy(why); }
  bool restore_begun() const { return restore_begun_; }  // what it works on does not change any more
  bool restored() const { return started_; }             // Restore has returned OK

  Result<cairn_report> Restore();

  void Step(int64_t label) {
    if (boundary_.Pass(label)) [[unlikely]]
      Arrive();
  }
  void Fence() {
    if (boundary_.copies_late()) AwaitLateCopies();
  }
  void QuietBegin();
  void QuietEnd();
  void Save(const std::string& tag);
  Status SetMetric(const std::string& name, double value);
  Status Wait(std::optional<std::chrono::milliseconds> bound);
  Status Finalize();

 private:
  ~Session() = default;

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
  void Arrive();
  void AwaitLateCopies();

  void OnMessage(int from, uint16_t type, std::string payload);  // loop
  void OnPeer(int rank, PeerState state, const std::string& why);
  void OnLeaderGone(PeerState state, const std::string& line);
  void OnReady(const Status& status);
  void OnSignal(const SignalSeen& signal);
  void OnInterrupt();
  void OnLeave(const LeaveOrder& order);
  void SendToLeader(uint16_t type, std::string payload);  // any thread
  // Loop: closes the directory, says goodbye to the members, each bounded, then calls `done`. May be called again meanwhile.
  void Depart(std::function<void()> done);
  void Abandon(
      std::function<void()> then);  // loop: the program may still run, but is held and saved no more; departs

  // Constant after Open.
  const std::string name_;
  const Bootstrap boot_;
  std::unique_ptr<Log> log_;
  Opened opened_;

  // The application's.
  Items items_;
  bool restore_begun_ = false;
  bool started_ = false;

  // Shared without a lock.
  std::atomic<bool> inside_{false};
  std::atomic<bool> told_to_leave_{false};  // by the leader: the job ends, and there will be no more saves
  Mailbox mailbox_;
  AddressBook addresses_;  // where members take bulk data

  Boundary boundary_;
  RestoreShare restore_;

  // Loop thread.
  bool leaving_ = false, departed_ = false;
  bool stopped_ = false;                  // the restore has failed: the program ends by itself
  std::optional<SignalSeen> unanswered_;  // a SIGTERM of which the leader has not said what follows
  std::vector<std::function<void()>> on_departed_;

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
