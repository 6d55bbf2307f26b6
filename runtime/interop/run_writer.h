// RunWriter: makes checkpoints of files that other processes have written, for programs that gather and wait by themselves
// (torch.distributed.checkpoint). No session, no network.
//
//   1. Open owns the run's directory until Close, as a life does (session/life.h): it is one.
//   2. Begin makes an attempt. The program tells the writers its folder; each makes files in it (box_file.h), and gives back its part of the index.
//   3. Commit puts the parts together and makes the attempt a checkpoint (catalog/commit.h). Without it the attempt goes with the next Begin, or
//      with Close.
//
// Which checkpoint a life goes on from is told by the first step that it commits: the newest one of an earlier step becomes its parent. A program
// that has loaded an older checkpoint, or starts over, thereby makes a branch, and what is past it becomes orphans (catalog/checkpoints.h). A
// step that is not past the life's last one is such a beginning as well: it ends the life, and another one begins. Until a life has
// committed it has no parent: a save that fails makes no orphans.
//
// Blocking I/O; one thread at a time.
#ifndef CAIRN_RUNTIME_INTEROP_RUN_WRITER_H_
#define CAIRN_RUNTIME_INTEROP_RUN_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/retention.h"
#include "runtime/formats/blobs.h"
#include "runtime/formats/index.h"
#include "runtime/log/log.h"
#include "runtime/session/life.h"

namespace cairn {

struct WrittenParts {
  std::string folder;  // that Begin returned
  uint32_t world_size = 1;
  std::span<const Index> parts;
  Blobs blobs;
  std::string tag;                // "" = none
  std::optional<KeepRules> keep;  // nothing = nothing is pruned
};

class RunWriter {
 public:
  // kBusy: another owner lives, and the message names it.
  static Result<std::unique_ptr<RunWriter>> Open(const std::string& directory);

  // Returns the attempt's folder. Without `step`: one past the newest of the run's line. kBusy: the directory was taken over, and the new owner
  // lives.
  Result<std::string> Begin(std::optional<int64_t> step);

  // Returns the checkpoint's name. kInvalid when the folder's attempt was given up for another one; kMismatch as MergeParts; kFenced when the
  // directory was taken over. After an error the attempt is given up.
  Result<std::string> Commit(WrittenParts written);

  void Abandon();  // gives up what was begun and not committed

  Status Close();  // the last act

 private:
  explicit RunWriter(std::string directory);
  Status Own();
  Status Leave();
  Result<std::string> TryCommit(WrittenParts written);
  Status Prune(const KeepRules& rules);
  void Forget();

  const std::string directory_;
  const std::string claim_;  // marks the epochs that are ours
  Log log_;
  Identity self_;               // life_'s
  std::unique_ptr<Life> life_;  // nothing between two of them
  std::string parent_;          // of life_; decided when that has committed
  bool published_ = false;      // parent_
  int64_t newest_step_ = -1;    // that life_ has committed
  std::optional<Attempt> attempt_;
  LeaseWatch leases_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_RUN_WRITER_H_
