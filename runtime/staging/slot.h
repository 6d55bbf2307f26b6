// Slot and SlotPool: recycled memory for one snapshot of a rank each.
//
// A slot holds the images of all files of this rank, headers already in place, and a sidecar. It is filled at
// a boundary by the program's thread (snapshot.h) and drained by a worker (drain.h); between the two, and
// while draining, its images do not change.
//
// A slot is free, then filling (Acquire), then complete (Complete, once all members have staged), until it is
// refilled. Rules of the pool:
//   1. A slot that is being filled or drained is never given out.
//   2. The newest complete slot is never refilled: until a newer one is complete it is the only snapshot on
//      this node. A single slot could then never save again: there it is refilled once its drain has ended.
//
// Threads: the pool belongs to one thread (the session's loop). A Slot may be used by the thread that it was
// handed to.
#ifndef CAIRN_RUNTIME_STAGING_SLOT_H_
#define CAIRN_RUNTIME_STAGING_SLOT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/local_tier.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/sidecar.h"

namespace cairn {

class Slot {
 public:
  // Maps and touches the memory of all images and writes their headers. `number` tells a rank's slots apart
  // in the tier.
  static Result<std::unique_ptr<Slot>> Make(const LocalTier& tier, const ImagePlan& plan, int number,
                                            const MayTakeFunction& may_take);

  // Maps the files of a slot that a dead rank left in `folder` (leftovers.h), their names beginning with `name`. kDamage when they are not
  // the images of `plan`.
  static Result<std::unique_ptr<Slot>> Adopt(int folder, const std::string& name, const ImagePlan& plan);

  // Memory that Make takes, in whole pages.
  static uint64_t BytesFor(const ImagePlan& plan);

  std::byte* image(size_t i) const { return images_[i].data(); }  // as in ImagePlan::images
  size_t image_count() const { return images_.size(); }
  Sidecar sidecar() const { return Sidecar(sidecar_.data()); }
  int number() const { return number_; }

 private:
  Slot() = default;
  int number_ = 0;
  std::vector<Mapping> images_;
  Mapping sidecar_;
};

class SlotPool {
 public:
  // Two slots if the memory allows, else one. When not even one fits: kOutOfMemory with what is needed, what is
  // left, what bounds it and the remedy; the job goes on without saves. All `ranks_on_node` call it at about the
  // same time and share the room, which is asked for again before each piece of memory is taken.
  static Result<SlotPool> Make(const LocalTier& tier, const ImagePlan& plan, int ranks_on_node,
                               const std::function<MemoryRoom()>& room);

  // The pool of slots that exist, for callers that have them.
  explicit SlotPool(std::vector<std::unique_ptr<Slot>> slots);

  int size() const { return static_cast<int>(entries_.size()); }

  // A slot that may be filled now, its sidecar begun with `id`; nullptr when the rules leave none (a drain is
  // in flight).
  Slot* Acquire(const SnapshotId& id);

  void Release(Slot* slot);     // filling ended without a snapshot, or the save was dropped: the slot is free
                                // and its sidecar void
  void Complete(Slot* slot);    // all members have staged: this is the newest complete slot
  void BeginDrain(Slot* slot);  // a worker reads the slot
  void EndDrain(Slot* slot);    // the worker has left it

 private:
  enum class Use { kFree, kFilling, kComplete };
  struct Entry {
    std::unique_ptr<Slot> slot;
    Use use = Use::kFree;
    bool draining = false;
    bool drained = false;
    uint64_t age = 0;  // counts completions
  };
  Entry& Of(const Slot* slot);

  std::vector<Entry> entries_;
  uint64_t completions_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SLOT_H_
