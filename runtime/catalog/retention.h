// Retention: which checkpoints of the run's own line are no longer kept, and their removal.
#ifndef CAIRN_RUNTIME_CATALOG_RETENTION_H_
#define CAIRN_RUNTIME_CATALOG_RETENTION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/beat.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/settings.h"

namespace cairn {

// Pure. The checkpoints to prune, oldest first, when the candidates that `rules` name are kept. `best` keeps
// the checkpoint next to a measurement (ByMetric): later ones with the same value tell nothing new of it. Spared besides: the newest; the newest with
// finite metrics (training may have run off since); `kept` (tagged, pinned, leased); `parent` until this epoch has a checkpoint of its
// own; orphans, and whatever is marked or cannot be read.
std::vector<std::string> PlanRetention(const Listing& listing, uint32_t epoch, const std::string& parent,
                                       const KeepRules& rules, const std::set<std::string>& kept);

// Pure. Of the checkpoints that have the metric of a kBest rule, as a finite number, the best first: of each measurement the one next to it.
std::vector<const Checkpoint*> ByMetric(const std::vector<const Checkpoint*>& newest_first,
                                        const KeepRule& rule);

// Removes one checkpoint. kFenced when `epoch` is not the newest any more, kBusy when a reader holds a lease on it: it is as it was then.
Status PruneCheckpoint(const RunDirectory& dir, uint32_t epoch, const std::string& name);

// Keeps a checkpoint from being pruned while it beats. The destructor gives it up.
class ReadLease {
 public:
  static Result<ReadLease> Take(const RunDirectory& dir, const std::string& checkpoint);
  ReadLease(ReadLease&& other) noexcept : file_(std::exchange(other.file_, std::nullopt)) {}
  ReadLease& operator=(ReadLease&&) = delete;
  ~ReadLease();

  Status Beat() { return file_->Beat(); }  // every kBeatInterval

 private:
  explicit ReadLease(BeatFile file) : file_(std::move(file)) {}
  std::optional<BeatFile> file_;  // nothing once moved from
};

// The lease of a reader that can do without: in a directory where only its owner may write there is none, and a checkpoint that is pruned
// meanwhile is reported as gone. One thread.
class HeldLease {
 public:
  HeldLease(const RunDirectory& dir, const std::string& checkpoint);

  // Call it every second or so.
  void Keep(BeatWatch::Time now);

 private:
  std::optional<ReadLease> lease_;
  BeatWatch::Time beaten_;
};

// The same for a reader of one or several that is busy otherwise: a thread of its own beats.
class BeatingLeases {
 public:
  BeatingLeases(const RunDirectory& dir, const std::vector<std::string>& checkpoints);

 private:
  std::vector<HeldLease> leases_;
  std::jthread beat_;
};

// The pruner's memory of the leases: which of them move. One for the life of the leader; not thread-safe.
class LeaseWatch {
 public:
  // Checkpoints with a lease that is not known to be dead. Dead leases (unmoved for kBeatBound between two
  // calls, or left) are removed.
  Result<std::set<std::string>> Leased(const RunDirectory& dir, BeatWatch::Time now);

 private:
  std::map<std::string, BeatWatch> watches_;  // by file name
};

// What tags, pins and read-leases keep from being pruned.
Result<std::set<std::string>> KeptByMarks(const RunDirectory& dir, LeaseWatch& leases, BeatWatch::Time now);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_RETENTION_H_
