// SnapshotPlan: the stall. Copies the program's memory into images, and nothing else.
//
// Prepared once per layout; Run is then nested loops around memcpy: it does not allocate, lock, hash or call
// the system, so its time is that of reading and writing the bytes once. With more than one thread (crew.h) the
// images are cut into parts of equal size, whatever the sizes of the arrays, and one system call wakes the others.
//
// Device memory (device.h) is copied by the device while the host's is copied here:
//   1. Run queues all copies from devices, those that may not be late first; a mark stands between the two, and one behind them.
//   2. It copies the host's memory.
//   3. It waits for the first mark: from then on the program may change what is stable until cairn_step returns alone.
//   4. Finish waits for the second one.
// After a failure everything that was queued has ended when Run or Finish returns: nobody writes to the images any more.
#ifndef CAIRN_RUNTIME_STAGING_SNAPSHOT_H_
#define CAIRN_RUNTIME_STAGING_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planner/base/status.h"
#include "runtime/staging/crew.h"
#include "runtime/staging/device.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {

// Which pieces lie in device memory, and may be copied late.
struct DevicePieces {
  const Device* device = nullptr;     // nullptr: none
  std::vector<bool> on_device, late;  // by piece
};

class SnapshotPlan {
 public:
  // `piece_strides[p]`: strides in bytes of piece p (as PiecesOf numbers them) in the program's memory, in
  // the layout's order of dimensions. kInvalid when a piece has none of the right rank.
  static Result<SnapshotPlan> Make(const ImagePlan& plan, const std::vector<Dims>& piece_strides,
                                   int threads = 1, const DevicePieces& devices = {});

  // Copies everything but the headers into the images, by their positions in the ImagePlan: its own, or the shared ones.
  // `pieces[p]` is the first element of piece p, as it is at this boundary; pieces of which nothing is copied (empty ones,
  // replicas that another rank writes) may be null. Cannot fail without devices.
  Status Run(void* const* pieces, std::byte* const* images) const;

  bool copies_from_devices() const { return device_ != nullptr; }

  // Whether Run leaves something to Finish, which any thread may call.
  bool late() const { return late_; }
  Status Finish() const;

  // Copies the bytes [begin, end) of one image, which lie past its header, to `out`, without leaving anything to Finish: of images that this rank
  // fills alone, each copy of which is dense in the image. Any number of threads at once. Cannot fail without devices.
  Status CopyRange(void* const* pieces, size_t image, uint64_t begin, uint64_t end, std::byte* out) const;

 private:
  struct Op {
    uint32_t piece;
    uint32_t image;
    int64_t source_offset;  // bytes from the piece's first element
    uint64_t offset;        // bytes from the start of the image
    StridedCopy copy;
    bool on_device, late;
  };
  struct Part {
    size_t op;      // the first one,
    int64_t in_op;  // from this byte of it on,
    int64_t bytes;  // and so many in all
  };
  void CutIntoParts();
  // `copy` is void(const Op&, int64_t begin, int64_t end, std::byte* out): bytes of the op's box.
  template <typename Copy>
  void ForEachOp(size_t image, uint64_t begin, uint64_t end, std::byte* out, Copy copy) const;
  void CopyHost(void* const* pieces, std::byte* const* images) const;
  Status QueueDevice(void* const* pieces, std::byte* const* images) const;
  Status Await(const Device::Mark& mark) const;

  std::vector<Op> ops_;      // by image and offset
  std::vector<Part> parts_;  // with more than one thread
  std::unique_ptr<Crew> crew_;
  const Device* device_ = nullptr;  // nullptr: nothing lies in device memory
  bool late_ = false;
  std::optional<Device::Mark> in_time_, all_;  // with a device
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SNAPSHOT_H_
