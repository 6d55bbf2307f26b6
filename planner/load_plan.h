// LoadPlan: which byte ranges of which files one rank reads, and where each part goes in its memory. Pure.
#ifndef CAIRN_PLANNER_LOAD_PLAN_H_
#define CAIRN_PLANNER_LOAD_PLAN_H_

#include <cstdint>
#include <vector>

#include "planner/saved_layout.h"

namespace cairn {

// A box that this rank wants; `array` is a position in SavedLayout::arrays (the caller matched the names).
struct WantedBox {
  uint32_t array = 0;
  Box box;
};

// `region` (global coordinates) of wanted box `wanted`; its first element lies `source_offset` bytes into the
// range, and going one step in dimension d moves `source_stride[d]` bytes.
struct CopyOut {
  uint32_t wanted = 0;
  Box region;
  uint64_t source_offset = 0;
  Dims source_stride;
};

struct ReadRange {
  uint32_t file = 0;
  uint64_t offset = 0;  // bytes from the start of the file
  uint64_t bytes = 0;
  std::vector<CopyOut> copies;
};

struct LoadPlan {
  std::vector<ReadRange> ranges;  // sorted by (file, offset), disjoint
  uint64_t needed_bytes = 0;      // unique bytes that the wanted boxes need
  uint64_t read_bytes = 0;        // sum of the ranges
};

// Which bytes are read though nobody wants them: a gap between two wanted stretches of a file is read along when
// - it is smaller than page_bytes: leaving it out would save no page of I/O and cost one more request (think of
//   single columns); or
// - it is at most max_gap_bytes, and the range then has at most max_waste unwanted bytes for each wanted one.
// So read_bytes <= (1 + max_waste) * needed_bytes, apart from gaps smaller than a page, and as long as wanted boxes
// do not overlap.
struct LoadPlanOptions {
  uint64_t page_bytes = 4 << 10;
  uint64_t max_gap_bytes = 64 << 10;
  double max_waste = 0.05;
  uint64_t max_range_bytes = 64 << 20;  // no range is longer (than this, or than one element)
};

// Every wanted element is copied exactly once, also where saved boxes overlap; a byte that several wanted
// boxes need is read once.
//
// kInvalid when a wanted box does not fit its array. kDamage when a saved box does not, or when no saved box
// covers a wanted element; the message names the array and the first hole.
Result<LoadPlan> PlanLoad(const SavedIndex& saved, const std::vector<WantedBox>& wanted,
                          const LoadPlanOptions& options = {});
Result<LoadPlan> PlanLoad(const SavedLayout& saved, const std::vector<WantedBox>& wanted,
                          const LoadPlanOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_PLANNER_LOAD_PLAN_H_
