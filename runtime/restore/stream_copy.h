// CopyPart and ForEachRun: a part of a StridedCopy, by bytes of the box's row-major order: what one block of a file has of a box, whatever came before.
#ifndef CAIRN_RUNTIME_RESTORE_STREAM_COPY_H_
#define CAIRN_RUNTIME_RESTORE_STREAM_COPY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/staging/strided_copy.h"

namespace cairn {

// Copies bytes [begin, end) of the box in row-major order. `src_origin` and `dst_origin` say where the box's first element lies, in bytes from
// `src` and `dst`: negative where it lies before them, as long as the part that is copied does not.
void CopyPart(const StridedCopy& copy, const std::byte* src, int64_t src_origin, std::byte* dst,
              int64_t dst_origin, uint64_t begin, uint64_t end);

// The contiguous runs of these bytes, in their order: each begins `src` and `dst` bytes from the box's first element.
template <typename Take>  // void(int64_t src, int64_t dst, uint64_t bytes)
void ForEachRun(const StridedCopy& copy, uint64_t begin, uint64_t end, Take take) {
  const auto run_bytes = static_cast<uint64_t>(copy.run_bytes);
  for (uint64_t at = begin; at < end;) {
    const uint64_t in_run = at % run_bytes, bytes = std::min(run_bytes - in_run, end - at);
    auto src = static_cast<int64_t>(in_run), dst = static_cast<int64_t>(in_run);
    auto run = static_cast<int64_t>(at / run_bytes);
    for (auto d = static_cast<size_t>(copy.loops); d-- > 0; run /= copy.count[d]) {
      src += run % copy.count[d] * copy.src_stride[d];
      dst += run % copy.count[d] * copy.dst_stride[d];
    }
    take(src, dst, bytes);
    at += bytes;
  }
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_STREAM_COPY_H_
