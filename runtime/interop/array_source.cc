#include "runtime/interop/array_source.h"

#include <algorithm>

namespace cairn {

uint64_t ArrayBytes(const ArraySpec& array) {
  return static_cast<uint64_t>(array.shape.Product()) * static_cast<uint64_t>(DTypeBytes(array.dtype));
}

std::vector<Box> Slabs(const Dims& shape, int64_t element_bytes, uint64_t max_bytes) {
  std::vector<Box> slabs;
  if (shape.Product() == 0) return slabs;
  // The outermost dimension of which one step fits is cut; those before it are walked one by one.
  int cut = 0;
  uint64_t step_bytes = static_cast<uint64_t>(element_bytes);
  for (int d = shape.size() - 1; d > 0; --d) {
    const uint64_t whole = step_bytes * static_cast<uint64_t>(shape[d]);
    if (whole > max_bytes) {
      cut = d;
      break;
    }
    step_bytes = whole;
  }
  Box box = Box::Whole(shape);
  if (shape.size() == 0) return {box};
  const int64_t steps = std::max<int64_t>(1, static_cast<int64_t>(max_bytes / step_bytes));
  for (int d = 0; d < cut; ++d) box.extent[d] = 1;
  for (;;) {
    for (box.offset[cut] = 0; box.offset[cut] < shape[cut]; box.offset[cut] += steps) {
      box.extent[cut] = std::min(steps, shape[cut] - box.offset[cut]);
      slabs.push_back(box);
    }
    int d = cut - 1;
    while (d >= 0 && ++box.offset[d] == shape[d]) box.offset[d--] = 0;
    if (d < 0) return slabs;
  }
}

Status Stream(ArraySource& source, uint32_t array, const Box& box, const Sink& sink) {
  const int64_t element_bytes = DTypeBytes(source.arrays()[array].dtype);
  std::vector<std::byte> buffer;
  uint64_t offset = 0;
  for (Box slab : Slabs(box.extent, element_bytes)) {
    for (int d = 0; d < slab.rank(); ++d) slab.offset[d] += box.offset[d];
    buffer.resize(static_cast<size_t>(slab.elements() * element_bytes));
    CAIRN_RETURN_IF_ERROR(source.Read(array, slab, buffer));
    CAIRN_RETURN_IF_ERROR(sink(slab, buffer, offset));
    offset += buffer.size();
  }
  return OkStatus();
}

}  // namespace cairn
