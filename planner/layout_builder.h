// LayoutBuilder: makes the layout of all ranks from what each of them holds, and finds the rules in it.
//
// Arrays of equal shape that so far have had equal boxes on every rank are one class and are kept once: memory grows
// with the number of ranks and of different classes, not with ranks times arrays.
#ifndef CAIRN_PLANNER_LAYOUT_BUILDER_H_
#define CAIRN_PLANNER_LAYOUT_BUILDER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "planner/grid.h"
#include "planner/layout.h"

namespace cairn {

class LayoutBuilder {
 public:
  // kInvalid when CheckArray refuses an array.
  static Result<LayoutBuilder> Make(std::vector<ArraySpec> arrays);

  // One more array, which the ranks so far hold nothing of; a is its position. kInvalid as above.
  Status AddArray(ArraySpec array);

  // The boxes of the next rank, counted from 0: array a has those of lists[list_of[a]]. Empty ones are left out, so
  // ordinals count the others. kInvalid when a box does not fit its array; the builder is of no more use then.
  Status AddRank(std::span<const uint32_t> list_of, std::span<const std::vector<Box>> lists);

  // A valid layout. kInvalid when no rank holds some element, naming the array and the first such elements.
  Result<Layout> Finish() &&;

 private:
  struct Class {
    uint32_t example = 0;  // one array of it
    std::vector<RankPieces> holders;
  };
  LayoutBuilder() = default;

  std::vector<ArraySpec> arrays_;
  std::vector<uint32_t> class_of_;  // by array
  std::vector<Class> classes_;
  uint32_t ranks_ = 0;
};

// The same layout with rules where there are any. For layouts that were put together piece by piece.
Result<Layout> FindRules(const Layout& layout);

// The same layout of some of its arrays alone, by increasing position.
Layout SelectArrays(const Layout& layout, const std::vector<uint32_t>& arrays);

}  // namespace cairn

#endif  // CAIRN_PLANNER_LAYOUT_BUILDER_H_
