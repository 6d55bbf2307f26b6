#include "runtime/catalog/removal.h"

#include "runtime/formats/names.h"

// Removal of step-X:
//
//   1. rename step-X to dead-step-X: nobody finds it any more;
//   2. fsync the run's directory: a crash must not bring the name back over a folder whose files are half gone;
//   3. look for a lease that a reader took after the caller had looked, and rename back if there is one;
//   4. remove the manifest, then the rest. Whoever finds a dead folder with a manifest (after a crash between 1 and 4, or when a stale
//      writer's commit fell into its takeover) has a whole checkpoint and gives it its name back; without one it is rubbish.

namespace cairn {

Result<bool> HasManifest(const RunDirectory& dir, const std::string& name) {
  const Result<uint64_t> bytes = FileBytes(dir.PathOf(name, names::kManifest));
  if (bytes.ok()) return true;
  if (bytes.status().code() == Code::kNotFound) return false;
  return bytes.status();
}

Status RemoveDead(const RunDirectory& dir, const std::string& dead) {
  CAIRN_RETURN_IF_ERROR(RemoveFile(dir.PathOf(dead, names::kManifest)));
  return RemoveTree(dir.PathOf(dead));
}

Status RemoveAttempt(const RunDirectory& dir, const std::string& name) {
  const std::string dead = names::Dead(name);
  if (Status status = RenameDirectory(dir.PathOf(name), dir.PathOf(dead)); !status.ok()) {
    return status.code() == Code::kNotFound ? OkStatus() : status;
  }
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
  const Result<std::vector<std::string>> leases = ListDirectory(dir.PathOf(names::kLeases));
  if (leases.ok()) {
    for (const std::string& lease : *leases) {
      const auto leased = names::ParseLease(lease);
      if (!leased || leased->ToString() != name) continue;
      CAIRN_RETURN_IF_ERROR(RenameDirectory(dir.PathOf(dead), dir.PathOf(name)));
      CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
      return {Code::kBusy, name + " is being read (" + std::string(names::kLeases) + "/" + lease + ")"};
    }
  }
  return RemoveDead(dir, dead);
}

}  // namespace cairn
