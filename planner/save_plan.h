// SavePlan: who writes which box into which file. Pure: the same layout gives the same plan on every rank.
#ifndef CAIRN_PLANNER_SAVE_PLAN_H_
#define CAIRN_PLANNER_SAVE_PLAN_H_

#include <cstdint>
#include <vector>

#include "planner/layout.h"

namespace cairn {

// A box that one rank writes: part (or the whole) of one of its own pieces.
struct WriteBox {
  uint32_t array = 0;
  uint32_t piece_ordinal = 0;  // which of the rank's pieces of this array holds the box
  uint32_t file = 0;           // position in SavePlan::files
  Box box;                     // global coordinates, not empty
};

// One file of the save. Boxes lie in it in the order in which they stand in SavePlan::boxes[rank], one box of an FQN per file.
struct PlannedFile {
  uint32_t rank = 0;      // the writer
  uint32_t number = 0;    // the number in the file's name, from 1; unique in the save
};

struct SavePlan {
  std::vector<PlannedFile> files;
  std::vector<std::vector<WriteBox>> boxes;  // by rank
  uint64_t bytes = 0;                        // of all boxes, each unique byte once where pieces are identical
};

// Rules: identical pieces held by k ranks are split among them by rows of dim 0 (whole, to the least loaded holder, when they have fewer
// rows than holders or less than `min_split_bytes`); bytes are balanced over ranks; a rank's j-th box of one FQN goes to that rank's j-th
// file, whose number is j * world_size + rank + 1; empty pieces are left out; a rank with nothing to write has no file.
struct SavePlanOptions {
  uint64_t min_split_bytes = 1 << 20;
};
Result<SavePlan> PlanSave(const Layout& layout, const SavePlanOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_PLANNER_SAVE_PLAN_H_
