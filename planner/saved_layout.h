// SavedLayout: where every box of every array of a checkpoint lies. SavedIndex finds what a box needs in it.
#ifndef CAIRN_PLANNER_SAVED_LAYOUT_H_
#define CAIRN_PLANNER_SAVED_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/box_index.h"
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

// A part of a box that was asked for, inside one saved box.
struct SavedPart {
  SavedBox saved;
  Box region;  // global coordinates, not empty
};

// One thread at a time: some of it is computed at first use.
class SavedIndex {
 public:
  // The layout stays the caller's, does not change and outlives the index. kDamage when an array or a saved box is
  // impossible, or the boxes are not grouped by array.
  static Result<SavedIndex> Make(const SavedLayout& saved);

  const SavedLayout& layout() const { return *saved_; }

  // Cuts `box`, which lies inside the array, into disjoint parts. An element that lies in several saved boxes is
  // always taken from the same one, whatever is asked for and by whom. kDamage when no saved box holds an element;
  // the message names the array and the first hole.
  Result<std::vector<SavedPart>> BoxesIn(uint32_t array, const Box& box) const;

  // The boxes in a file, those that are not empty, by their offset. The exchange plan asks for few files: those that a
  // rank's own pieces come from.
  const std::vector<SavedBox>& BoxesOfFile(uint32_t file) const;

 private:
  SavedIndex() = default;

  const SavedLayout* saved_ = nullptr;
  std::vector<size_t> first_box_;                         // by array, and one more: position in boxes
  mutable std::vector<std::unique_ptr<BoxIndex>> boxes_;  // by array, at first use
  mutable std::vector<std::vector<SavedBox>> by_file_;    // at first use
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_SAVED_LAYOUT_H_
