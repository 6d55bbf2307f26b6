// Keeper: the leader's hand on the run's directory: claims it, leads the restore, commits and prunes. The session's order of these is in
// runtime/session/coordinator.h.
//
// How a snapshot is rescued that an earlier life of the run staged on all ranks and did not make durable:
//   1. Each node's first rank lists the slots that dead ranks of this job left there (staging/leftovers.h); the others report their node.
//   2. The keeper looks for the newest snapshot that is complete, on the run's line (its life's epoch: catalog/checkpoints.cc) and newer than
//      the newest good checkpoint (session/local_snapshot.h).
//   3. It reads the layout under which the snapshot was taken from one of the nodes, and makes an attempt of this epoch.
//   4. The ranks of the nodes that hold them write the images into it, as in a drain, and report the records.
//   5. It is committed like any other save. Its parent, and so this epoch's, is the checkpoint before it; the parent is published only then:
//      an epoch that died before has published nothing, is passed by, and the snapshot is still on the line.
//   6. All load it as the newest checkpoint. What lies on a rank's own node is read from memory.
//   7. When the restore has ended well, on whatever checkpoint, and the parent is published, the leftovers of the run are off the line or
//      durable: every node removes its own. If anything stops before, they stay for the next life.
//
// Everything here blocks on the directory, and the restore on the other members; one thread (the clerk). It talks to the members through the
// functions given to it, and to the log.
#ifndef CAIRN_RUNTIME_SESSION_KEEPER_H_
#define CAIRN_RUNTIME_SESSION_KEEPER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/agreement/leader.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/retention.h"
#include "runtime/control/control_client.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/life.h"
#include "runtime/session/local_snapshot.h"
#include "runtime/session/mailbox.h"
#include "runtime/session/protocol.h"
#include "runtime/session/state.h"

namespace cairn {

// A committed save, for the log and `cairn status`.
struct SaveReport {
  std::string name;
  std::string trigger;
  int64_t step = 0;
  int64_t label = 0;
  uint64_t bytes = 0;
  int64_t stall_ns = 0;  // the longest of all members
  int64_t drain_ns = 0;
  int64_t hurried_stall_ns = 0;  // as in MemberRecord
  int64_t hurried_drain_ns = 0;
};

class Keeper {
 public:
  struct Links {
    Log* log = nullptr;
    Mailbox* mailbox = nullptr;
    std::function<void(int rank, const Order& order)> send;
    std::function<void(const Order& order)> broadcast;
    std::function<HolderInSlurm(const Identity& holder)> ask_slurm;  // blocking, bounded
  };

  Keeper(const Bootstrap& boot, std::string session, Links links);

  // For cairn_open. Not owning the directory is no error as long as nothing in it is at stake: the job runs, and each save tries again.
  Opened Open();

  // For cairn_restore: collects the members' shares, offers them checkpoints from the newest on until all have loaded one, and returns the
  // last order (kProceed or kStop), which the caller sends to all. `match`: as the program asks. Restart rules: docs/design/restore.md.
  Order Restore(MatchOptions match);

  // For agreement::Prepare, Commit and Finish.
  Result<std::string> Prepare(int64_t step);
  Result<SaveReport> Commit(const agreement::Commit& save);
  Status Finish();

  void Abandon();  // the attempt that was prepared, when its save was dropped
  void Prune();
  void Close();  // the last act

  // One line of journal.jsonl: event, time, epoch and the fields given (values are JSON texts).
  using Fields = std::vector<std::pair<std::string, std::string>>;
  void Journal(std::string_view event, const Fields& fields = {});
  static std::string Quote(std::string_view text);  // as a JSON text

  // The step at which the life before this one began, where this one is its requeue; known after Restore.
  std::optional<int64_t> restored_before() const { return restored_before_; }

 private:
  Status Own();
  ControlPoint Control() const;
  Status PublishParent();
  void LookBack();
  Status MergeShares();  // into state_ and described_, and to all members
  Result<std::vector<Inventory>> CollectInventories();
  // Sends each member its order and waits for what all report. The first that fails ends the round for
  // all. The worst of their outcomes: damage counts less than what proves nothing, and more than what follows from another one's failure.
  Result<std::vector<Outcome>> Ask(const std::function<Order(int rank)>& order_for,
                                   std::chrono::nanoseconds bound);
  Result<std::optional<Origin>> OriginOfNewRun() const;
  Result<Order> Choose(const RunDirectory& dir);
  Result<Order> BeginFrom(const Origin& origin);
  void CompareRoom();
  Result<Order> Offer(const LoadedCheckpoint& checkpoint);
  Result<std::string> Rescue(const LocalSnapshot& local, const std::string& parent);
  Result<Manifest> Publish(Index index, const std::vector<MemberRecord>& records, const State& state,
                           Manifest manifest);
  Status PrepareAll();
  void PassOver(const RunDirectory& dir, const std::string& name, const Status& why);
  Status OwnLate();

  const Bootstrap& boot_;
  const std::string session_;
  const Links links_;
  const std::string claim_;     // marks the epochs that we claimed, also in a try that failed later
  std::unique_ptr<Life> life_;  // nothing while the directory cannot be owned
  std::optional<RunDirectory> directory_;  // readable, owned or not
  std::vector<Inventory> inventories_;     // by rank; what earlier lives left on the nodes
  // The snapshot that this life made durable before it loaded it.
  struct Rescued {
    std::string name;    // the checkpoint that it has become, of this epoch
    std::string parent;  // what its own life would have called its last checkpoint: this epoch's parent
    LocalSnapshot local;
  };
  std::optional<Rescued> rescued_;
  State state_;
  MatchOptions match_;                 // of the restore
  std::optional<Index> described_;     // the index of every save, but for the files' roots
  std::optional<std::string> parent_;  // decided by Restore
  bool parent_published_ = false;
  Status too_late_;  // why the directory must not be owned any more
  std::optional<int64_t> restored_before_;
  uint32_t rounds_ = 0;  // of Ask
  std::optional<Attempt> attempt_;
  std::string newest_;  // checkpoint that this life loaded or committed; "" = none
  LeaseWatch leases_;
  bool room_compared_ = false;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_KEEPER_H_
