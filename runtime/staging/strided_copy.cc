#include "runtime/staging/strided_copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

// Shorter runs go through the cache: they would leave half-written lines behind.
constexpr int64_t kStreamBytes = 512;

// Copies at least kStreamBytes past the cache. The image is next read by the drain, and the program wants its cache back; besides, a line
// that is not first fetched in order to be overwritten saves a third of the memory traffic.
void Stream(const std::byte* src, std::byte* dst, int64_t bytes) {
#ifdef __SSE2__
  constexpr int64_t kLine = 64;
  const auto head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) % kLine);
  std::memcpy(dst, src, static_cast<size_t>(head));
  int64_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* from = reinterpret_cast<const __m128i*>(src + at);
    auto* to = reinterpret_cast<__m128i*>(dst + at);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(dst + at, src + at, static_cast<size_t>(bytes - at));
#else
  std::memcpy(dst, src, static_cast<size_t>(bytes));
#endif
}

// Makes what was streamed visible before anything that is stored later.
void EndStream() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

// The innermost loop. Short runs of the usual element sizes become single moves.
template <typename CopyRun>
void CopyRow(const std::byte* src, std::byte* dst, int64_t count, int64_t src_stride, int64_t dst_stride,
             int64_t run_bytes, CopyRun copy_run) {
  const auto each = [&](auto size) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * dst_stride, src + i * src_stride, size());
  };
  switch (run_bytes) {
    case 1:
      return each([] { return size_t{1}; });
    case 2:
      return each([] { return size_t{2}; });
    case 4:
      return each([] { return size_t{4}; });
    case 8:
      return each([] { return size_t{8}; });
    case 16:
      return each([] { return size_t{16}; });
    default:
      for (int64_t i = 0; i < count; ++i) copy_run(src + i * src_stride, dst + i * dst_stride, run_bytes);
  }
}

void CopyBytes(const std::byte* src, std::byte* dst, int64_t bytes) {
  std::memcpy(dst, src, static_cast<size_t>(bytes));
}

}  // namespace

Dims DenseStrides(const Dims& extent, int64_t element_bytes) {
  Dims strides = Dims::Filled(extent.size(), element_bytes);
  for (int d = extent.size() - 2; d >= 0; --d) strides[d] = strides[d + 1] * extent[d + 1];
  return strides;
}

StridedCopy StridedCopy::Make(const Dims& extent, int64_t element_bytes, const Dims& src_stride_bytes,
                              const Dims& dst_stride_bytes) {
  StridedCopy copy;
  if (extent.Product() == 0) return copy;
  copy.run_bytes = element_bytes;
  // From the innermost dimension outwards; the loops come out innermost first.
  for (int d = extent.size() - 1; d >= 0; --d) {
    if (extent[d] == 1) continue;
    const int64_t src = src_stride_bytes[d];
    const int64_t dst = dst_stride_bytes[d];
    if (copy.loops == 0 && src == copy.run_bytes && dst == copy.run_bytes) {
      copy.run_bytes *= extent[d];
      continue;
    }
    const auto inner = static_cast<size_t>(copy.loops) - 1;
    if (copy.loops > 0 && src == copy.src_stride[inner] * copy.count[inner] &&
        dst == copy.dst_stride[inner] * copy.count[inner]) {
      copy.count[inner] *= extent[d];
      continue;
    }
    const auto next = static_cast<size_t>(copy.loops++);
    copy.count[next] = extent[d];
    copy.src_stride[next] = src;
    copy.dst_stride[next] = dst;
  }
  std::reverse(copy.count.begin(), copy.count.begin() + copy.loops);
  std::reverse(copy.src_stride.begin(), copy.src_stride.begin() + copy.loops);
  std::reverse(copy.dst_stride.begin(), copy.dst_stride.begin() + copy.loops);
  return copy;
}

int64_t StridedCopy::runs() const {
  if (run_bytes == 0) return 0;
  int64_t n = 1;
  for (int i = 0; i < loops; ++i) n *= count[static_cast<size_t>(i)];
  return n;
}

int64_t StridedCopy::DstOffset(int64_t byte) const {
  int64_t offset = byte % run_bytes;
  int64_t run = byte / run_bytes;
  for (int i = loops - 1; i >= 0; --i) {
    const auto d = static_cast<size_t>(i);
    offset += run % count[d] * dst_stride[d];
    run /= count[d];
  }
  return offset;
}

void StridedCopy::Run(const std::byte* src, std::byte* dst, int64_t begin, int64_t end) const {
  if (begin >= end) return;
  const auto copy_run = [](const std::byte* from, std::byte* to, int64_t n) {
    n >= kStreamBytes ? Stream(from, to, n) : CopyBytes(from, to, n);
  };
  std::array<int64_t, kMaxRank> index{};
  int64_t run = begin / run_bytes;
  for (int i = loops - 1; i >= 0; --i) {
    const auto d = static_cast<size_t>(i);
    index[d] = run % count[d];
    run /= count[d];
    src += index[d] * src_stride[d];
  }
  int64_t in_run = begin % run_bytes;
  dst -= in_run;  // both point to the begin of a run from here on
  const auto inner = static_cast<size_t>(std::max(loops, 1) - 1);
  for (int64_t left = end - begin;;) {
    int64_t runs = 1;
    if (loops == 0 || in_run != 0 || left < run_bytes) {
      const int64_t n = std::min(run_bytes - in_run, left);
      copy_run(src + in_run, dst + in_run, n);
      left -= n;
      in_run = 0;
    } else {
      runs = std::min(count[inner] - index[inner], left / run_bytes);
      CopyRow(src, dst, runs, src_stride[inner], dst_stride[inner], run_bytes, copy_run);
      left -= runs * run_bytes;
    }
    if (left == 0) return EndStream();
    index[inner] += runs;
    src += runs * src_stride[inner];
    dst += runs * dst_stride[inner];
    for (size_t d = inner; index[d] == count[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
      src += src_stride[d - 1] - src_stride[d] * count[d];
      dst += dst_stride[d - 1] - dst_stride[d] * count[d];
    }
  }
}

WindowedCopy::WindowedCopy(const StridedCopy& copy, uint64_t position, std::byte* dst)
    : copy_(copy), position_(position), dst_(dst), done_(copy.run_bytes == 0) {}

void WindowedCopy::Feed(const std::byte* window, uint64_t begin, uint64_t end) {
  while (!done_ && position_ >= begin && position_ < end) {
    const std::byte* src = window + (position_ - begin);
    const auto left = static_cast<int64_t>(end - position_);
    if (copy_.loops > 0 && in_run_ == 0 && left >= copy_.run_bytes) {
      // As many whole runs of the innermost loop as the window holds, at once.
      const auto inner = static_cast<size_t>(copy_.loops) - 1;
      const int64_t src_stride = copy_.src_stride[inner];
      const int64_t dst_stride = copy_.dst_stride[inner];
      const int64_t n =
          std::min(copy_.count[inner] - index_[inner], (left - copy_.run_bytes) / src_stride + 1);
      CopyRow(src, dst_, n, src_stride, dst_stride, copy_.run_bytes, CopyBytes);
      index_[inner] += n - 1;
      position_ += static_cast<uint64_t>((n - 1) * src_stride);
      dst_ += (n - 1) * dst_stride;
      Advance(copy_.run_bytes);
    } else {
      const int64_t bytes = std::min(copy_.run_bytes - in_run_, left);
      std::memcpy(dst_, src, static_cast<size_t>(bytes));
      Advance(bytes);
    }
  }
}

void WindowedCopy::Advance(int64_t bytes) {
  in_run_ += bytes;
  if (in_run_ < copy_.run_bytes) {
    position_ += static_cast<uint64_t>(bytes);
    dst_ += bytes;
    return;
  }
  position_ -= static_cast<uint64_t>(copy_.run_bytes - bytes);  // back to the run's start
  dst_ -= copy_.run_bytes - bytes;
  in_run_ = 0;
  for (int d = copy_.loops - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    position_ += static_cast<uint64_t>(copy_.src_stride[i]);
    dst_ += copy_.dst_stride[i];
    if (++index_[i] < copy_.count[i]) return;
    index_[i] = 0;
    position_ -= static_cast<uint64_t>(copy_.src_stride[i] * copy_.count[i]);
    dst_ -= copy_.dst_stride[i] * copy_.count[i];
  }
  done_ = true;
}

}  // namespace cairn
