// Slot and SlotPool: where one snapshot of a rank is put until it is durable.
//
// There are two kinds of slots: memory that holds the images (memory_slot.h), and, where there is no memory for that, files on the durable
// tier that bear no meaning yet (write_through_slot.h). A slot is filled at a boundary while the program stands still and drained by a
// worker; between the two, and while draining, its images do not change.
//
// A slot is free, then filling (Acquire), then complete (Complete, once all members have staged), until it is
// refilled. Rules of the pool:
//   1. A slot that is being filled or drained is never given out.
//   2. The newest complete slot is never refilled: until a newer one is complete it is the only snapshot on
//      this node. A single slot could then never save again: there it is refilled once its drain has ended, and so is the only one that no
//      drain holds.
//
// Threads: the pool belongs to one thread (the session's loop). A Slot may be used by the thread that it was
// handed to.
#ifndef CAIRN_RUNTIME_STAGING_SLOT_H_
#define CAIRN_RUNTIME_STAGING_SLOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/sidecar.h"

namespace cairn {

class DrainControl;
struct DrainOptions;
class SnapshotPlan;

class Slot {
 public:
  virtual ~Slot() = default;

  // Takes the snapshot, whose sidecar Acquire has begun, and marks it STAGED, unless `snapshot.late()`: then what it leaves is the affair of
  // Finish. `pieces` as for SnapshotPlan::Run; the program's memory does not change meanwhile. kCancelled after `control.Cancel`, where that is
  // looked at.
  virtual Status Fill(const ImagePlan& plan, const SnapshotPlan& snapshot, void* const* pieces,
                      DrainControl& control) = 0;

  // Waits for the copies that Fill has left under way, and marks it STAGED. Nothing writes to the images afterwards, whatever it returns.
  Status Finish(const SnapshotPlan& snapshot);

  // Makes the images durable files of an attempt: the contract is that of drain.h.
  virtual Result<std::vector<ShardRecord>> Drain(const ImagePlan& plan, const DrainOptions& options,
                                                 DrainControl& control) = 0;

  virtual Sidecar sidecar() = 0;

  // Where an image lies (as ImagePlan::images); null for a slot that has none in memory.
  virtual std::byte* image(size_t) const { return nullptr; }

  int number() const { return number_; }  // tells a rank's slots apart, from 0

 protected:
  explicit Slot(int number) : number_(number) {}

 private:
  const int number_;
};

class SlotPool {
 public:
  explicit SlotPool(std::vector<std::unique_ptr<Slot>> slots);

  int size() const { return static_cast<int>(entries_.size()); }
  Slot& slot(int i) const { return *entries_[static_cast<size_t>(i)].slot; }

  // A slot that may be filled now, its sidecar begun with `id`; nullptr when the rules leave none (a drain is
  // in flight).
  Slot* Acquire(const SnapshotId& id);

  void Release(Slot* slot);     // filling ended without a snapshot, or the save was dropped: the slot is free
                                // and its sidecar void
  void Complete(Slot* slot);    // all members have staged: this is the newest complete slot
  void BeginDrain(Slot* slot);  // a worker reads the slot
  void EndDrain(Slot* slot);    // the worker has left it, or will not come to it

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
