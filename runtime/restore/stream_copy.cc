#include "runtime/restore/stream_copy.h"

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

template <size_t kBytes>
void CopyFixed(const std::byte* src, std::byte* dst, int64_t runs, int64_t src_stride, int64_t dst_stride) {
  for (; runs > 0; --runs, src += src_stride, dst += dst_stride) std::memcpy(dst, src, kBytes);
}

void CopyRuns(const std::byte* src, std::byte* dst, int64_t runs, int64_t src_stride, int64_t dst_stride,
              size_t bytes) {
  switch (bytes) {  // single elements: no call for each
    case 1:
      return CopyFixed<1>(src, dst, runs, src_stride, dst_stride);
    case 2:
      return CopyFixed<2>(src, dst, runs, src_stride, dst_stride);
    case 4:
      return CopyFixed<4>(src, dst, runs, src_stride, dst_stride);
    case 8:
      return CopyFixed<8>(src, dst, runs, src_stride, dst_stride);
    case 16:
      return CopyFixed<16>(src, dst, runs, src_stride, dst_stride);
    default:
      for (int64_t i = 0; i < runs; ++i) std::memcpy(dst + i * dst_stride, src + i * src_stride, bytes);
  }
}

}  // namespace

void CopyPart(const StridedCopy& copy, const std::byte* src, int64_t src_origin, std::byte* dst,
              int64_t dst_origin, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  if (copy.loops == 0)  // past the CPU's cache, which the program has no use of for these bytes yet
    return copy.Run(src + src_origin, dst + dst_origin + begin, static_cast<int64_t>(begin),
                    static_cast<int64_t>(end));
  const auto run_bytes = static_cast<uint64_t>(copy.run_bytes);
  const int inner = copy.loops - 1;
  std::array<int64_t, kMaxRank> index{};
  auto run = static_cast<int64_t>(begin / run_bytes);
  for (int i = inner; i >= 0; --i) {
    const auto d = static_cast<size_t>(i);
    index[d] = run % copy.count[d];
    run /= copy.count[d];
    src_origin += index[d] * copy.src_stride[d];
    dst_origin += index[d] * copy.dst_stride[d];
  }
  uint64_t in_run = begin % run_bytes;
  for (uint64_t left = end - begin;;) {
    int64_t whole = 0;  // runs of the innermost loop that are copied at once
    if (inner >= 0 && in_run == 0 && left >= run_bytes) {
      const auto d = static_cast<size_t>(inner);
      whole = std::min(copy.count[d] - index[d], static_cast<int64_t>(left / run_bytes));
      CopyRuns(src + src_origin, dst + dst_origin, whole, copy.src_stride[d], copy.dst_stride[d], run_bytes);
      left -= static_cast<uint64_t>(whole) * run_bytes;
    } else {
      const uint64_t bytes = std::min(run_bytes - in_run, left);
      std::memcpy(dst + dst_origin + in_run, src + src_origin + in_run, bytes);
      left -= bytes;
      in_run = 0;
      whole = 1;
    }
    if (left == 0) return;
    for (int i = inner; i >= 0; --i) {
      const auto d = static_cast<size_t>(i);
      index[d] += whole;
      src_origin += whole * copy.src_stride[d];
      dst_origin += whole * copy.dst_stride[d];
      if (index[d] < copy.count[d]) break;
      src_origin -= index[d] * copy.src_stride[d];
      dst_origin -= index[d] * copy.dst_stride[d];
      index[d] = 0;
      whole = 1;
    }
  }
}

}  // namespace cairn
