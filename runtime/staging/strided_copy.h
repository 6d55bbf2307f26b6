// StridedCopy: how a box of elements is copied between two strided memories, with the work done once and the
// copying kept to nested loops around memcpy. Used for the snapshot (program → image) and for the restore
// (file block → program).
//
// Neither allocates, locks nor calls the system when it copies.
#ifndef CAIRN_RUNTIME_STAGING_STRIDED_COPY_H_
#define CAIRN_RUNTIME_STAGING_STRIDED_COPY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "planner/base/box.h"

namespace cairn {

// Row-major strides in bytes of a dense box.
Dims DenseStrides(const Dims& extent, int64_t element_bytes);

// `loops` nested loops, outermost first, each step copying `run_bytes` contiguous bytes. Dimensions that are
// contiguous in both memories are part of the run; neighbouring loops that can be one are one; loops of count
// 1 are left out.
struct StridedCopy {
  int loops = 0;
  std::array<int64_t, kMaxRank> count{};
  std::array<int64_t, kMaxRank> src_stride{};  // bytes
  std::array<int64_t, kMaxRank> dst_stride{};  // bytes
  int64_t run_bytes = 0;                       // 0 = the box is empty

  static StridedCopy Make(const Dims& extent, int64_t element_bytes, const Dims& src_stride_bytes,
                          const Dims& dst_stride_bytes);

  int64_t runs() const;  // memcpys in all
  int64_t bytes() const { return runs() * run_bytes; }
  int64_t DstOffset(int64_t byte) const;  // of this byte of the box, from its first element; byte < bytes()
  // Both point to the box's first element. Long runs are written past the CPU's cache.
  void Run(const std::byte* src, std::byte* dst) const { Run(src, dst, 0, bytes()); }
  // Only the bytes [begin, end) of the box, counted in row-major order. `src` points to the box's first element, `dst` to where its byte
  // `begin` goes.
  void Run(const std::byte* src, std::byte* dst, int64_t begin, int64_t end) const;
};

// A StridedCopy whose source comes in windows of increasing position, as when a file is read block by block.
// The source strides must be those of a dense row-major box that holds the copied one, so that positions
// increase along the loops.
class WindowedCopy {
 public:
  // `position` is where the box's first element lies on the axis of the windows (for example its offset in
  // the file).
  WindowedCopy(const StridedCopy& copy, uint64_t position, std::byte* dst);

  // Copies what [begin, end) holds of the box and has not been copied; `window` points to the byte at
  // `begin`. Windows come in order, and what lies before `begin` and was in no earlier window is never
  // copied.
  void Feed(const std::byte* window, uint64_t begin, uint64_t end);

  bool done() const { return done_; }
  uint64_t next_position() const {
    return position_;
  }  // of the first byte that is not copied yet, unless done

 private:
  void Advance(int64_t bytes);  // within the run, then to the next run

  StridedCopy copy_;
  std::array<int64_t, kMaxRank> index_{};
  int64_t in_run_ = 0;  // bytes of the present run that are copied
  uint64_t position_;   // of the next byte to copy
  std::byte* dst_;      // of the next byte to copy
  bool done_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_STRIDED_COPY_H_
