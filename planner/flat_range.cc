#include "planner/flat_range.h"

#include <algorithm>

namespace cairn {
namespace {

// The part of the range in dimensions d and on; `box` is one row in each dimension before.
void Cut(const Dims& shape, int d, Box box, int64_t begin, int64_t count, std::vector<Box>* boxes) {
  if (count == 0) return;
  if (d == shape.size()) return boxes->push_back(box);
  int64_t row_elements = 1;
  for (int inner = d + 1; inner < shape.size(); ++inner) row_elements *= shape[inner];
  const auto cut_row = [&](int64_t row, int64_t first, int64_t elements) {
    box.offset[d] = row;
    box.extent[d] = 1;
    Cut(shape, d + 1, box, first, elements, boxes);
  };
  if (const int64_t skipped = begin % row_elements; skipped > 0) {
    const int64_t elements = std::min(count, row_elements - skipped);
    cut_row(begin / row_elements, skipped, elements);
    begin += elements;
    count -= elements;
  }
  const int64_t rows = count / row_elements;
  if (rows > 0) {
    Box whole = box;
    whole.offset[d] = begin / row_elements;
    whole.extent[d] = rows;
    for (int inner = d + 1; inner < shape.size(); ++inner) {
      whole.offset[inner] = 0;
      whole.extent[inner] = shape[inner];
    }
    boxes->push_back(whole);
  }
  cut_row(begin / row_elements + rows, 0, count % row_elements);
}

}  // namespace

std::vector<Box> CutFlatRange(const Dims& shape, int64_t begin, int64_t count) {
  std::vector<Box> boxes;
  Cut(shape, 0, Box::Whole(shape), begin, count, &boxes);
  return boxes;
}

}  // namespace cairn
