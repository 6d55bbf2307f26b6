// LoadPlan: which byte ranges of which files one rank reads, and where each part goes in its memory. Pure.
#ifndef CAIRN_PLANNER_LOAD_PLAN_H_
#define CAIRN_PLANNER_LOAD_PLAN_H_

#include <cstdint>
#include <vector>

#include "planner/layout.h"

namespace cairn {

// A box as it lies on disk: dense, row-major, at `file_offset` of file `file`.
struct SavedBox {
  uint32_t array = 0;
  uint32_t file = 0;
  uint64_t file_offset = 0;  // bytes from the start of the file
  Box box;
};

struct SavedLayout {
  std::vector<ArraySpec> arrays;
  std::vector<SavedBox> boxes;  // grouped by array
};

// A box that this rank wants; `array` is a position in SavedLayout::arrays (the caller matched the names).
struct WantedBox {
  uint32_t array = 0;
  Box box;
};

// `region` (global coordinates) of wanted box `wanted`; its first element lies `source_offset` bytes into the range, and going one step in
// dimension d moves `source_stride[d]` bytes.
struct CopyOut {
  uint32_t wanted = 0;
  Box region;
  uint64_t source_offset = 0;
  Dims source_stride;
};

struct ReadRange {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<CopyOut> copies;
};

struct LoadPlan {
  std::vector<ReadRange> ranges;  // sorted by (file, offset), disjoint
  uint64_t needed_bytes = 0;      // unique bytes that the wanted boxes need
  uint64_t read_bytes = 0;        // sum of the ranges
};

struct LoadPlanOptions {
  uint64_t max_gap_bytes = 64 << 10;      // ranges that are nearer than this are read as one
  double max_waste = 0.05;                // … as long as the bytes read in vain stay below this share of a range
  uint64_t max_range_bytes = 64 << 20;    // no longer ranges than this (a single row of dim 0 may be longer)
};

// kDamage when a wanted element is covered by no saved box, naming the array and the first hole.
Result<LoadPlan> PlanLoad(const SavedLayout& saved, const std::vector<WantedBox>& wanted, const LoadPlanOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_PLANNER_LOAD_PLAN_H_
