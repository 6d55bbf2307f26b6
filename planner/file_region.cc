#include "planner/file_region.h"

#include <algorithm>

namespace cairn {

FileRegion FileRegion::Make(const SavedBox& saved, const Box& box, int64_t element_bytes) {
  FileRegion region{saved.array,  saved.file, saved.file_offset, box, Dims::Filled(box.rank(), element_bytes),
                    element_bytes};
  for (int d = box.rank() - 1; d > 0; --d) region.stride[d - 1] = region.stride[d] * saved.box.extent[d];
  for (int d = 0; d < box.rank(); ++d)
    region.offset += static_cast<uint64_t>((box.offset[d] - saved.box.offset[d]) * region.stride[d]);
  return region;
}

uint64_t FileRegion::end() const {
  uint64_t end = offset + static_cast<uint64_t>(element_bytes);
  for (int d = 0; d < box.rank(); ++d) end += static_cast<uint64_t>((box.extent[d] - 1) * stride[d]);
  return end;
}

// The rows of each dimension that lie wholly before, from the outermost inwards; then the part of one element.
uint64_t FileRegion::BytesBefore(uint64_t file_offset) const {
  if (file_offset <= offset) return 0;
  auto left = static_cast<int64_t>(file_offset - offset);
  int64_t row_bytes = box.elements() * element_bytes;
  int64_t before = 0;
  for (int d = 0; d < box.rank(); ++d) {
    row_bytes /= box.extent[d];
    const int64_t rows = left / stride[d];
    if (rows >= box.extent[d]) return static_cast<uint64_t>(before + box.extent[d] * row_bytes);
    before += rows * row_bytes;
    left -= rows * stride[d];
  }
  return static_cast<uint64_t>(before + std::min(left, element_bytes));
}

}  // namespace cairn
