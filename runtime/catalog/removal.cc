#include "runtime/catalog/removal.h"

#include <map>
#include <utility>

#include "runtime/catalog/epoch.h"
#include "runtime/formats/manifest.h"
#include "runtime/formats/names.h"

// Removal of step-X by the life of epoch E:
//
//   1. read the fence;
//   2. rename step-X to removed-e<E>-step-X: nobody finds it any more; fsync the run's directory: a crash must not bring the name back over a
//      folder whose files are half gone;
//   3. read the fence again, and look for a lease that a reader took after the caller had looked. If a newer epoch has claimed, it may have
//      counted step-X as committed before 2: rename back. If there is a lease: rename back, too;
//   4. remove the manifest and fsync the folder, then remove the rest: a crash must not bring the manifest back over files that are gone.
//
// A kill after 2 leaves a folder that the next life's take-over removes (FinishRemoval), manifest or not: what E had begun to remove was not
// needed, and nobody counts it while it bears that name. With one exception: E was overtaken before 2, and killed before it could rename back.
// Then a life between E and the one that finds the folder may have gone on from step-X. That is so only if that life had published its parent,
// for it had then ended its own take-over and seen no such folder: step-X gets its name back.
//
// In a bucket folders cannot be renamed. What makes step-X a checkpoint is its manifest:
//
//   1. read the fence, look for leases, and list what there is;
//   2. read the manifest and remove it: nobody finds step-X any more;
//   3. as above; instead of renaming back, put the manifest back, unless something of the rest is gone: then a newer life, which found no manifest,
//      is removing step-X. It may have begun after that look, so look again afterwards, and remove the manifest if so (it looks for a manifest once it
//      has removed the rest, so one of the two sees what the other did);
//   4. remove the rest.
//
// A kill after 2 leaves an attempt without a manifest, which the next life removes, and so does a store that cannot be reached in 3: neither fence nor
// leases can be told then, and the manifest is put back only if the store answers again. The exception above has no cure here: such a life goes on, but
// step-X is lost to those after it. What is pruned is never the newest checkpoint, so that takes a life that had to pass over all newer ones.

namespace cairn {
namespace {

using Sizes = std::map<std::string, uint64_t>;

Result<Sizes> ListAttempt(const std::string& folder) {
  Result<Sizes> sizes = FileSizes(folder);
  if (sizes.status().code() == Code::kNotFound) return Sizes();
  return sizes;
}

}  // namespace

Result<bool> HasManifest(const RunDirectory& dir, const std::string& name) {
  if (dir.in_bucket()) {
    CAIRN_ASSIGN_OR_RETURN(const Sizes there, ListAttempt(dir.PathOf(name)));
    return there.contains(std::string(names::kManifest));
  }
  const Result<uint64_t> bytes = FileBytes(dir.PathOf(name, names::kManifest));
  if (bytes.ok()) return true;
  if (bytes.status().code() == Code::kNotFound) return false;
  return bytes.status();
}

namespace {

// OK, or why the folder must live.
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

// Step 3 of a checkpoint that must live after all. `rest` is what it is made of besides its manifest.
Status PutBack(const std::string& folder, const std::string& manifest, const Sizes& rest) {
  const std::string path = folder + "/" + std::string(names::kManifest);
  const auto whole = [&]() -> Result<bool> {
    CAIRN_ASSIGN_OR_RETURN(Sizes there, ListAttempt(folder));
    there.erase(std::string(names::kManifest));
    return there == rest;
  };
  CAIRN_ASSIGN_OR_RETURN(const bool before, whole());
  if (!before) return OkStatus();
  CAIRN_RETURN_IF_ERROR(PublishFile(path, manifest));
  CAIRN_ASSIGN_OR_RETURN(const bool still, whole());
  return still ? OkStatus() : RemoveFile(path);
}

Status RemoveObjects(const RunDirectory& dir, uint32_t epoch, const std::string& name) {
  CAIRN_RETURN_IF_ERROR(MayDie(dir, epoch, name));
  const std::string folder = dir.PathOf(name), path = dir.PathOf(name, names::kManifest);
  CAIRN_ASSIGN_OR_RETURN(Sizes rest, ListAttempt(folder));
  if (rest.erase(std::string(names::kManifest)) != 0) {
    CAIRN_ASSIGN_OR_RETURN(const std::string manifest, ReadAll(path, kMaxManifestBytes));
    CAIRN_RETURN_IF_ERROR(RemoveFile(path));
    if (Status why_not = MayDie(dir, epoch, name); !why_not.ok()) {
      CAIRN_RETURN_IF_ERROR(PutBack(folder, manifest, rest));
      return why_not;
    }
  }
  return RemoveTree(folder);
}

}  // namespace

Status RemoveAttempt(const RunDirectory& dir, uint32_t epoch, const std::string& name) {
  if (dir.in_bucket()) return RemoveObjects(dir, epoch, name);
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));
  const std::string removed = names::Removed(epoch, name);
  if (Status status = RenameDirectory(dir.PathOf(name), dir.PathOf(removed)); !status.ok()) {
    return status.code() == Code::kNotFound ? OkStatus() : status;
  }
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
  if (Status why_not = MayDie(dir, epoch, name); !why_not.ok()) {
    const Status back = RenameDirectory(dir.PathOf(removed), dir.PathOf(name));
    if (back.code() == Code::kNotFound) return why_not;  // the newer life has ended the removal
    CAIRN_RETURN_IF_ERROR(back);
    CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.path()));
    return why_not;
  }
  return FinishRemoval(dir, removed);
}

Status FinishRemoval(const RunDirectory& dir, const std::string& removed) {
  CAIRN_RETURN_IF_ERROR(RemoveFile(dir.PathOf(removed, names::kManifest)));
  CAIRN_RETURN_IF_ERROR(SyncDirectory(dir.PathOf(removed)));
  return RemoveTree(dir.PathOf(removed));
}

}  // namespace cairn
