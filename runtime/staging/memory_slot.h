// MemorySlot: recycled memory for one snapshot of a rank: its images, headers already in place, and a sidecar. Files of the local tier, or
// anonymous (local_tier.h).
//
// Where ranks fill images together (ImagePlan::shared), the slot of each but the first has a sidecar alone, and fills the images of the first
// one's slot of the same number:
//   1. All of a writer's ranks acquire the slots of the same number: what their pools do follows from how each save ended, which all hear in
//      the same order. The leader compares the numbers before it commits.
//   2. Who comes first voids what the first one's sidecar says of an older save, before it stores anything.
//   3. Each marks its own sidecar STAGED. The images are whole when all do, and only then the first drains them.
//   4. Who was slow in step 2 may have voided what the first one had marked meanwhile: before it drains, that one marks it again
//      (SlotPool::Complete).
#ifndef CAIRN_RUNTIME_STAGING_MEMORY_SLOT_H_
#define CAIRN_RUNTIME_STAGING_MEMORY_SLOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/staging/local_tier.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/slot.h"

namespace cairn {

class MemorySlot : public Slot {
 public:
  // Maps and touches the memory of all images and writes their headers. `number` tells a rank's slots apart
  // in the tier. `shared_folder`: of the rank that has made the images of `plan.shared`.
  static Result<std::unique_ptr<MemorySlot>> Make(const LocalTier& tier, const ImagePlan& plan, int number,
                                                  const MayTakeFunction& may_take,
                                                  const std::string& shared_folder = "");

  // Maps the files of a slot that a dead rank left in `folder` (leftovers.h), their names beginning with `name`. kDamage when they are not
  // the images of `plan`.
  static Result<std::unique_ptr<MemorySlot>> Adopt(int folder, const std::string& name,
                                                   const ImagePlan& plan);

  // Memory that Make takes, in whole pages.
  static uint64_t BytesFor(const ImagePlan& plan);

  // The copy, and nothing else: it cannot be cancelled, and fails only where a device does.
  Status Fill(const ImagePlan& plan, const SnapshotPlan& snapshot, void* const* pieces,
              DrainControl& control) override;
  Result<std::vector<ShardRecord>> Drain(const ImagePlan& plan, const DrainOptions& options,
                                         DrainControl& control) override;
  Sidecar sidecar() override { return Sidecar(sidecar_.data()); }

  std::byte* image(size_t i) const override { return images_[i]; }

 private:
  using Slot::Slot;
  void Add(Mapping image);
  std::vector<Mapping> mappings_;
  Mapping sidecar_of_first_;  // where the images are shared and this rank is another one
  std::vector<std::byte*> images_;
  Mapping sidecar_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_MEMORY_SLOT_H_
