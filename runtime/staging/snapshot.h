// SnapshotPlan: the stall. Copies the program's memory into a slot's images, and nothing else.
//
// Prepared once per layout; Run is then nested loops around memcpy: it does not allocate, lock, hash or call
// the system, so its time is that of reading and writing the bytes once.
#ifndef CAIRN_RUNTIME_STAGING_SNAPSHOT_H_
#define CAIRN_RUNTIME_STAGING_SNAPSHOT_H_

#include <cstdint>
#include <vector>

#include "planner/base/status.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/slot.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {

class SnapshotPlan {
 public:
  // `piece_strides[p]`: strides in bytes of piece p (as PiecesOf numbers them) in the program's memory, in
  // the layout's order of dimensions. kInvalid when a piece has none of the right rank.
  static Result<SnapshotPlan> Make(const ImagePlan& plan, const std::vector<Dims>& piece_strides);

  // Copies into `slot` and marks it STAGED. `pieces[p]` is the first element of piece p, as it is at this
  // boundary; pieces of which nothing is copied (empty ones, replicas that another rank writes) may be null.
  void Run(void* const* pieces, Slot& slot) const;

 private:
  struct Op {
    uint32_t piece;
    uint32_t image;
    int64_t source_offset;  // bytes from the piece's first element
    uint64_t offset;        // bytes from the start of the image
    StridedCopy copy;
  };
  std::vector<Op> ops_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SNAPSHOT_H_
