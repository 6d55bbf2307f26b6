// Keeper: the leader's hand on the run's directory: claims it, commits what the members have written into it, and prunes. The session's order
// of these is in runtime/session/coordinator.h.
//
//   1. Open claims the next epoch (session/life.h). Where that is not possible, and nothing is at stake, each Prepare tries again.
//   2. GoOnFrom: the restore (session/restore_leader.h) has settled from which checkpoint this life goes on; the epoch publishes it as its
//      parent. Only then may it save.
//   3. A save: Prepare makes the attempt's folder, the members write into it, Commit makes it a checkpoint (catalog/commit.h) or Abandon
//      removes it; then Prune.
//   4. Finish names the last checkpoint of the run; Close gives the directory up.
//
// Everything here blocks on the directory; one thread (the clerk).
#ifndef CAIRN_RUNTIME_SESSION_KEEPER_H_
#define CAIRN_RUNTIME_SESSION_KEEPER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/agreement/leader.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/event.h"
#include "runtime/catalog/retention.h"
#include "runtime/control/control_client.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/items.h"
#include "runtime/session/life.h"
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
  int64_t durable_ns = 0;        // from when it was asked for until the checkpoint was in place
  int64_t hurried_stall_ns = 0;  // as in MemberRecord
  int64_t hurried_drain_ns = 0;
};

// A checkpoint that this life has made.
struct Published {
  std::string name;
  Manifest manifest;
};

// What a life goes on from.
struct Beginning {
  State state;             // what all members registered
  Index index;             // of every save of it, but for the files' roots
  std::string checkpoint;  // that all have loaded; "" = none
  std::string parent;      // this epoch's: the checkpoint, or what was the newest before it was rescued
};

// Each member gets what all had in blobs of CAIRN_BLOB_MERGE: kInvalid where that is more than `most` bytes.
Status CheckMerged(const Blobs& blobs, uint64_t most = kMaxMergedBytes);

class Keeper {
 public:
  struct Links {
    Log* log = nullptr;
    std::function<HolderInSlurm(const Identity& holder)> ask_slurm;  // blocking, bounded
  };

  Keeper(const Bootstrap& boot, std::string session, Links links);

  // For cairn_open. Not owning the directory is no error as long as nothing in it is at stake: the job runs, and each save tries again.
  Opened Open();

  Log& log() const { return *links_.log; }
  // Null while it cannot be read; there, yet not owned: epoch() is nothing.
  const RunDirectory* directory() const { return directory_ ? &*directory_ : nullptr; }
  std::optional<uint32_t> epoch() const;

  void GoOnFrom(Beginning beginning);
  bool parent_published() const { return parent_published_; }
  const std::string& newest() const {
    return newest_;
  }  // of the run, as far as this life loaded or made it; "" = none

  // The step at which the life before this one began, where this one is its requeue. Known once this life may save.
  std::optional<int64_t> BeginOfLifeBefore() const;

  // For agreement::Prepare, Commit and Finish.
  Result<std::string> Prepare(int64_t step);
  // `asked`: when the save was begun. kCancelled after Abandon.
  Result<SaveReport> Commit(const agreement::Commit& save, std::chrono::steady_clock::time_point asked);
  void JournalSaved(const SaveReport& report);  // apart from Commit: nobody needs to wait for it
  Status Finish();

  // As Commit, of an attempt whose files are there: `records` by rank of the life that staged it, `state` what that had registered. Of
  // `manifest` the caller fills label, trigger, parent and tag.
  Result<Published> Publish(Index index, const std::vector<MemberRecord>& records, const State& state,
                            Manifest manifest);

  size_t files() const { return described_ ? described_->files.size() : 0; }  // of arrays, in each save
  // From now on, other files: what Beginning says of them.
  void SaveAs(State state, Index index);

  void Abandon();  // the attempt that was prepared, when its save was dropped
  void Prune();
  void Close();  // the last act: what follows saves nothing

  // One line of the journal (catalog/event.h), of this life.
  using Fields = JournalFields;
  void Journal(std::string_view event, const Fields& fields = {});
  static std::string Quote(std::string_view text) { return JsonText(text); }

 private:
  Result<std::optional<Origin>> OriginOfNewRun() const;
  Status Own();
  ControlPoint Control() const;
  void CompareRoom() const;
  Status PublishParent();
  Status OwnLate();

  const Bootstrap& boot_;
  const std::string session_;
  const Links links_;
  const std::string claim_;     // marks the epochs that we claimed, also in a try that failed later
  std::unique_ptr<Life> life_;  // nothing while the directory cannot be owned
  std::optional<RunDirectory> directory_;  // readable, owned or not
  State state_;
  std::optional<Index> described_;     // the index of every save, but for the files' roots
  std::optional<std::string> parent_;  // from GoOnFrom on
  bool parent_published_ = false;
  Status too_late_;  // why nothing is saved any more
  std::optional<Attempt> attempt_;
  std::string newest_;  // checkpoint that this life loaded or committed; "" = none
  LeaseWatch leases_;
  bool said_metrics_left_out_ = false;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_KEEPER_H_
