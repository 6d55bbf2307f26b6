// Flat ranges: pieces that are stretches of the row-major flattening of an array, as flat parameters and partitioned
// optimizer states are. In plans and on disk they are boxes.
#ifndef CAIRN_PLANNER_FLAT_RANGE_H_
#define CAIRN_PLANNER_FLAT_RANGE_H_

#include <cstdint>
#include <vector>

#include "planner/base/box.h"

namespace cairn {

// Elements [begin, begin + count) of the flattening as boxes, in its order: at most two for each dimension but one. Each
// box is a stretch of the flattening itself. The range lies inside the array; a scalar has one element.
std::vector<Box> CutFlatRange(const Dims& shape, int64_t begin, int64_t count);

}  // namespace cairn

#endif  // CAIRN_PLANNER_FLAT_RANGE_H_
