// Staging: where the snapshots of one rank go, chosen once from the memory that is left. In this order:
//
//   1. two slots in the local tier, else one (memory_slot.h)
//   2. where the tier is too small but memory is not (a container's /dev/shm): the same in anonymous memory
//   3. where memory is too small: one slot that writes through to the durable tier (write_through_slot.h)
//
// Images that several ranks fill (ImagePlan::shared) are seen by all of them: in the local tier, or nowhere.
//
// Memory is shared out: each rank of the node gets an equal part of the room, less the head-room (memory_room.h), since the others take theirs
// meanwhile; and of what the images may take at all, where that is less (CAIRN_LOCAL_LIMIT). Before each piece is taken the room is read again.
// Writing through needs little, and takes up to a quarter of a rank's part, from the head-room too: four buffers of a block each, fewer when there is
// less.
#ifndef CAIRN_RUNTIME_STAGING_STAGING_H_
#define CAIRN_RUNTIME_STAGING_STAGING_H_

#include <functional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/local_tier.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/slot.h"
#include "runtime/staging/write_through_slot.h"

namespace cairn {

struct StagingOptions {
  LocalTierOptions tier;
  int ranks_on_node = 1;             // that call Make at about the same time
  std::function<MemoryRoom()> room;  // of the whole node's part of the job
  uint64_t limit_bytes = 0;          // what all images on the node may take; 0 = as much as there is
  WriteThroughOptions write_through;
  int ranks_of_writer = 1;    // that fill the same images; this rank is one of them
  std::string shared_folder;  // of the first, where this rank is another one (MemorySlot::Make)
};

struct Staging {
  LocalTier tier;
  SlotPool pool;
  // Sentences for the log: the tier's (LocalTier::notes), who else may empty it, and what a limit costs.
  std::vector<std::string> notes;
  // For the user, when images are not where they should be: what is needed, what is left, what bounds it, what that means, and the remedy.
  std::string warning;

  // kOutOfMemory, with the same, where nothing can be saved; the tier's errors.
  static Result<Staging> Make(const StagingOptions& options, const ImagePlan& plan);
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_STAGING_H_
