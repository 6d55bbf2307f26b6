// The size of a dense box of elements, for shapes that a stranger wrote.
#ifndef CAIRN_RUNTIME_FORMATS_CHECKED_SIZE_H_
#define CAIRN_RUNTIME_FORMATS_CHECKED_SIZE_H_

#include <cstdint>
#include <optional>

#include "planner/base/box.h"
#include "planner/base/dtype.h"

namespace cairn {

// Nothing when an extent is negative or the size exceeds 63 bits, or where elements are of several values: when they have no last dimension, or one
// whose values exceed 63 bits.
inline std::optional<uint64_t> CheckedBytes(const Dims& extent, DType dtype) {
  const int values = DTypeValues(dtype);
  if (values > 1 && (extent.size() == 0 || extent[extent.size() - 1] > INT64_MAX / values))
    return std::nullopt;
  int64_t bytes = DTypeBytes(dtype);
  bool empty = false;
  for (int64_t n : extent) {
    if (n < 0) return std::nullopt;
    empty |= n == 0;
  }
  if (empty) return 0;
  for (int64_t n : extent) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_CHECKED_SIZE_H_
