#include "runtime/staging/snapshot.h"

#include <string>

namespace cairn {

Result<SnapshotPlan> SnapshotPlan::Make(const ImagePlan& plan, const std::vector<Dims>& piece_strides) {
  SnapshotPlan snapshot;
  for (uint32_t i = 0; i < plan.images.size(); ++i) {
    for (const CopyTask& task : plan.images[i].copies) {
      if (task.piece >= piece_strides.size() || piece_strides[task.piece].size() != task.region.rank()) {
        return Status(Code::kInvalid, "piece " + std::to_string(task.piece) + " has no strides of " +
                                          std::to_string(task.region.rank()) + " dimensions");
      }
      const Dims& strides = piece_strides[task.piece];
      Op op;
      op.piece = task.piece;
      op.image = i;
      op.source_offset = 0;
      for (int d = 0; d < strides.size(); ++d) op.source_offset += task.region.offset[d] * strides[d];
      op.offset = task.offset;
      op.copy = StridedCopy::Make(task.region.extent, task.element_bytes, strides,
                                  DenseStrides(task.region.extent, task.element_bytes));
      snapshot.ops_.push_back(op);
    }
  }
  return snapshot;
}

void SnapshotPlan::Run(void* const* pieces, Slot& slot) const {
  for (const Op& op : ops_) {
    op.copy.Run(static_cast<const std::byte*>(pieces[op.piece]) + op.source_offset,
                slot.image(op.image) + op.offset);
  }
  slot.sidecar().MarkStaged();
}

}  // namespace cairn
