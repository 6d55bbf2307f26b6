// SavePlan: who writes which box into which file. Pure: the same layout gives the same plan on every rank.
#ifndef CAIRN_PLANNER_SAVE_PLAN_H_
#define CAIRN_PLANNER_SAVE_PLAN_H_

#include <cstdint>
#include <vector>

#include "planner/layout.h"

namespace cairn {

// A box that one rank writes: the whole of one of its own pieces, or some rows of dim 0 of it.
struct WriteBox {
  uint32_t array = 0;
  uint32_t piece_ordinal = 0;  // which of the rank's pieces of this array holds the box
  uint32_t file = 0;           // position in SavePlan::files
  Box box;                     // global coordinates, not empty
};

struct PlannedFile {
  uint32_t rank = 0;    // the writer
  uint32_t number = 0;  // the number in the file's name, from 1; unique in the save
};

struct SavePlan {
  std::vector<PlannedFile> files;            // by number; each holds at least one box
  std::vector<std::vector<WriteBox>> boxes;  // by rank; as they lie on disk, file after file
  uint64_t bytes = 0;                        // of all boxes
};

struct SavePlanOptions {
  uint64_t min_split_bytes = 1 << 20;  // no piece is split into parts that are smaller than about this
};

// The rules:
// 1. A piece is written once, however many ranks hold it: pieces are the same when their boxes are equal. Pieces that
//    overlap without being equal are all written whole. Empty pieces are left out.
// 2. Bytes are balanced over ranks. Pieces with one holder are given to it first. Then those with several, the largest
//    first, are split by rows of dim 0 among the least loaded of their holders, so that these come out level: among as
//    many as there are rows, and as min_split_bytes allows. What cannot be split goes whole to the least loaded holder.
//    Ties go to the lowest rank.
// 3. A file holds at most one box of an array: a rank's j-th box (from 0) of each array goes to the rank's j-th file,
//    whose number is j * world_size + rank + 1. A rank with nothing to write has no file.
//
// kInvalid when ValidateLayout refuses the layout, or when a rank has so many pieces of one array that file numbers do
// not fit 32 bits.
Result<SavePlan> PlanSave(const Layout& layout, const SavePlanOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_PLANNER_SAVE_PLAN_H_
