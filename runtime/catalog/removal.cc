#include "runtime/catalog/removal.h"

#include "runtime/catalog/epoch.h"
#include "runtime/formats/names.h"

// Removal of step-X:
//
//   1. read the fence;
//   2. rename step-X to dead-step-X: nobody finds it any more; fsync the run's directory: a crash must not bring the name back over a folder
//      whose files are half gone;
//   3. read the fence again, and look for a lease that a reader took after the caller had looked. If a newer epoch has claimed, it may have
//      counted step-X as committed before 2: rename back. If there is a lease: rename back, too;
//   4. remove the manifest and fsync the folder, then remove the rest: a crash must not bring the manifest back over files that are gone.
//      Whoever finds a dead folder with a manifest (after a crash between 2 and 4, or when a stale writer's commit fell into its takeover)
//      has a whole checkpoint and gives it its name back; without one it is rubbish.

namespace cairn {

Result<bool> HasManifest(const RunDirectory& dir, const std::string& name) {
  const Result<uint64_t> bytes = FileBytes(dir.PathOf(name, names::kManifest));
  if (bytes.ok()) return true;
  if (bytes.status().code() == Code::kNotFound) return false;
  return bytes.status();
}

namespace {

// OK, or why the folder, which bears its dead name already, must live.
Status MayDie(const RunDirectory& dir, uint32_t epoch, const std::string& name) {
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));
  const Result<std::vector<std::string>> leases = ListDirectory(dir.PathOf(names::kLeases));
  if (!leases.ok()) return leases.status().code() == Code::kNotFound ? OkStatus() : leases.status();
  for (const std::string& lease : *leases) {
    const auto leased = names::ParseLease(lease);
    if (leased && leased->ToString() == name) {
      return {Code::kBusy, name + " is being read (" + std::string(names::kLeases) + "/" + lease + ")"};
    }
  }
  return OkStatus();
}

}  // namespace

Status RemoveAttempt(const RunDirectory& dir, uint32_t epoch, const std::string& name) {
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));
  const std::string dead = names::Dead(name);
  if (Status status = RenameDirectory(dir.PathOf(name), dir.PathOf(dead)); !status.ok()) {
    return status.code() == Code::kNotFound ? OkStatus() : status;
  }
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
  if (Status why_not = MayDie(dir, epoch, name); !why_not.ok()) {
    CAIRN_RETURN_IF_ERROR(RenameDirectory(dir.PathOf(dead), dir.PathOf(name)));
    CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
    return why_not;
  }
  CAIRN_RETURN_IF_ERROR(RemoveFile(dir.PathOf(dead, names::kManifest)));
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.PathOf(dead)));
  return RemoveTree(dir.PathOf(dead));
}

}  // namespace cairn
