// SavePlan: who writes which box into which file. Pure: the same layout gives the same plan on every rank, and each rank
// computes only its own part of it.
//
// 1. A piece is written once, however many ranks hold it: pieces are the same when their boxes are equal. Pieces that
//    overlap without being equal are all written whole.
// 2. Pieces with one holder are written by it. Those with several are shared by their holders, as save_stream.h
//    describes: all pieces that the same ranks hold are laid end to end and cut into segments of equal length, one for
//    each of these ranks, at rows of dim 0. So a large piece is split, small ones go whole to one or the other, and
//    every holder writes about the same number of bytes. Of arrays with a rule the sharing ranks are told by the rule
//    (grid_writers.h), of the others by the list of holders.
// 3. A file holds at most one box of an array: a rank's j-th box (from 0) of each array, in the order of ordinals, goes
//    to the rank's j-th file, whose number is j * world_size + rank + 1. A rank with nothing to write has no file.
// 4. In a file, wider elements come first; within a width the arrays with a rule, class by class (grid_writers.h), then
//    the others, in the order of arrays. There are no holes, so a box's place follows from the boxes before it.
#ifndef CAIRN_PLANNER_SAVE_PLAN_H_
#define CAIRN_PLANNER_SAVE_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/grid_writers.h"
#include "planner/layout.h"

namespace cairn {

// A box that one rank writes: the whole of one of its own pieces, or some rows of dim 0 of it.
struct WriteBox {
  uint32_t array = 0;
  uint32_t piece_ordinal = 0;  // which of the rank's pieces of this array holds the box
  uint32_t file = 0;           // j: the rank's own file, from 0
  uint64_t offset = 0;         // bytes, from the first byte of data in that file
  Box box;                     // global coordinates, not empty
};

struct SavePlanOptions {
  uint64_t min_split_bytes = kMinSplitBytes;  // no piece is split into parts that are smaller than about this
};

// The number in the file's name, from 1; unique in the save.
inline uint64_t FileNumber(uint32_t world_size, uint32_t rank, uint32_t file) {
  return uint64_t{file} * world_size + rank + 1;
}

// The files of one rank.
struct RankFiles {
  std::vector<uint64_t> data_bytes;  // by file j; none is 0
  std::vector<WriteBox> listed;      // the boxes of arrays without a rule, by array, then by ordinal
};

// One thread at a time (GridWriters).
class SavePlan {
 public:
  uint32_t world_size() const { return layout_->world_size; }
  uint64_t min_split_bytes() const { return min_split_bytes_; }
  uint64_t bytes() const { return bytes_; }  // of all boxes of all ranks

  // Costs about as much as there are rules and boxes without one: cheap enough to ask for every rank.
  RankFiles FilesOf(uint32_t rank) const;
  // All that the rank writes, as it lies on disk: file after file.
  std::vector<WriteBox> BoxesOf(uint32_t rank) const;

 private:
  friend Result<SavePlan> PlanSave(const Layout& layout, const SavePlanOptions& options);
  SavePlan(const Layout& layout, uint64_t min_split_bytes);
  std::vector<FileShape> PlaceInFiles(std::vector<WriteBox>* listed, uint32_t rank) const;

  const Layout* layout_;
  uint64_t min_split_bytes_;
  uint64_t bytes_ = 0;
  std::unique_ptr<GridWriters> writers_;
  std::vector<std::vector<WriteBox>>
      listed_;  // by rank: boxes of arrays without a rule, by array, then by ordinal
};

// The layout stays the caller's, does not change and outlives the plan. kInvalid when ValidateLayout refuses it, or when
// a rank has so many pieces of one array that file numbers do not fit 32 bits.
Result<SavePlan> PlanSave(const Layout& layout, const SavePlanOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_PLANNER_SAVE_PLAN_H_
