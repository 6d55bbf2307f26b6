// Leftovers: what ranks that died have left in the local tier of this node: slots that hold a whole snapshot of their rank.
//
// Only folders of this user, this job and this node are looked at, and only those whose owner is dead (the living hold a lock on theirs). A
// folder of this node is never looked for by another node's name, also where both see the same files.
//
// A slot counts when its sidecar says at least STAGED and its record is whole; a folder in which none does is removed by List. The images
// themselves are judged when they are read: against their sidecar's content hash where there is one (HASHED). A slot that was only STAGED
// has none: its pages are the very memory that the snapshot was copied into, they cannot be torn, and nothing else guarded them before.
//
// What goes: Remove. Who decides when: docs/design/restore.md.
//
// Threads: any; blocking, but never on a disk.
#ifndef CAIRN_RUNTIME_STAGING_LEFTOVERS_H_
#define CAIRN_RUNTIME_STAGING_LEFTOVERS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/fd.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/local_tier.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/slot_record.h"

namespace cairn {

// One whole slot of a dead rank.
struct LeftSlot {
  std::string folder;  // its name in cairn-<uid>
  std::string slot;    // how the names of its files begin: "slot0"
  SnapshotId id;
  std::string run_id;
  SnapshotStamp stamp;
  std::vector<uint32_t> images;  // their numbers, increasing
  bool has_layout = false;       // the folder holds the layout of its life

  friend bool operator==(const LeftSlot&, const LeftSlot&) = default;
};

class Leftovers {
 public:
  // kPermission and the like where the local tier cannot be used. An anonymous tier never leaves anything.
  static Result<Leftovers> Open(const LocalTierOptions& options);

  // Whole slots, by folder and slot. Removes dead folders that hold none, but for empty ones: they may just have been made.
  std::vector<LeftSlot> List() const;

  // The layout of a folder's life. kDamage, kNotFound.
  Result<std::string> ReadLayout(const std::string& folder) const;
  // What kDestinationFile of a folder holds. kDamage, kNotFound.
  Result<std::string> ReadDestination(const std::string& folder) const;

  struct Adopted {
    std::unique_ptr<MemorySlot> slot;
    SidecarContent sidecar;
    RecordContent record;
  };
  // Maps a slot as it is. kDamage when it is not whole, or its images are not those that `plan` says.
  Result<Adopted> Adopt(const std::string& folder, const std::string& slot, const ImagePlan& plan) const;

  // The paths of a slot's images, by the number in their names.
  std::map<uint32_t, std::string> ImagePaths(const std::string& folder, const std::string& slot) const;

  // Removes the dead folders whose slots are of this run.
  void Remove(const std::string& run_id) const;

 private:
  Leftovers() = default;
  std::vector<std::string> DeadFolders() const;
  Result<UniqueFd> OpenFolder(const std::string& folder) const;
  std::vector<LeftSlot> ListFolder(const std::string& folder) const;

  std::string path_, prefix_;  // of cairn-<uid>; of the names in it
  UniqueFd parent_;            // invalid: there is nothing
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_LEFTOVERS_H_
