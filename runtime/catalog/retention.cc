#include "runtime/catalog/retention.h"

#include <algorithm>

#include "runtime/catalog/removal.h"
#include "runtime/formats/names.h"
#include "runtime/io/random.h"

namespace cairn {

std::vector<std::string> PlanRetention(const Listing& listing, uint32_t epoch, const std::string& parent,
                                       int keep_last, const std::set<std::string>& kept) {
  const auto is_own = [&](const Checkpoint& c) {
    return c.id.epoch == epoch && c.readable.ok() && c.struck.empty();
  };
  const bool has_own = std::any_of(listing.checkpoints.begin(), listing.checkpoints.end(), is_own);
  std::vector<std::string> prune;
  int good = 0;
  for (const Checkpoint& c : listing.checkpoints) {
    if (c.orphan || !c.struck.empty() || !c.readable.ok()) continue;
    if (++good <= keep_last || kept.contains(c.name) || (c.name == parent && !has_own)) continue;
    prune.push_back(c.name);
  }
  std::reverse(prune.begin(), prune.end());
  return prune;
}

Status PruneCheckpoint(const RunDirectory& dir, uint32_t epoch, const std::string& name) {
  return RemoveAttempt(dir, epoch, name);
}

Result<ReadLease> ReadLease::Take(const RunDirectory& dir, const std::string& checkpoint) {
  CAIRN_RETURN_IF_ERROR(MakeDirectories(dir.PathOf(names::kLeases), dir.mode()));
  CAIRN_ASSIGN_OR_RETURN(BeatFile file,
                         BeatFile::Create(dir.PathOf(names::Lease(checkpoint, RandomHex(8))), dir.mode()));
  ReadLease lease(std::move(file));
  // Only now look: a pruner that renamed the folder before it could see the lease either gives it back or has removed it.
  CAIRN_ASSIGN_OR_RETURN(const bool there, HasManifest(dir, checkpoint));
  if (!there) return Status(Code::kNotFound, dir.PathOf(checkpoint) + " is no checkpoint (any more)");
  return lease;
}

ReadLease::~ReadLease() {
  if (file_) (void)RemoveFile(file_->path());
}

HeldLease::HeldLease(const RunDirectory& dir, const std::string& checkpoint)
    : beaten_(std::chrono::steady_clock::now()) {
  auto lease = ReadLease::Take(dir, checkpoint);
  if (lease.ok()) lease_.emplace(*std::move(lease));
}

void HeldLease::Keep(BeatWatch::Time now) {
  if (!lease_ || now - beaten_ < kBeatInterval) return;
  beaten_ = now;
  (void)lease_->Beat();
}

Result<std::set<std::string>> LeaseWatch::Leased(const RunDirectory& dir, BeatWatch::Time now) {
  const Result<std::vector<std::string>> files = ListDirectory(dir.PathOf(names::kLeases));
  if (!files.ok() && files.status().code() != Code::kNotFound) return files.status();
  std::set<std::string> leased;
  std::map<std::string, BeatWatch> watches;
  for (const std::string& file : files.ok() ? *files : std::vector<std::string>()) {
    const auto checkpoint = names::ParseLease(file);
    if (!checkpoint) continue;
    const std::string path = dir.PathOf(names::kLeases, file);
    BeatWatch watch = watches_[file];
    const BeatWatch::State state = watch.Observe(ReadBeat(path), now);
    if (state == BeatWatch::State::kStill || state == BeatWatch::State::kLeft) {
      (void)RemoveFile(path);
      continue;
    }
    leased.insert(checkpoint->ToString());
    watches[file] = watch;
  }
  watches_ = std::move(watches);
  return leased;
}

}  // namespace cairn
