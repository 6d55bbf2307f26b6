// SavedLayout: where every box of every array of a checkpoint lies. SavedIndex finds what a box needs in it.
#ifndef CAIRN_PLANNER_SAVED_LAYOUT_H_
#define CAIRN_PLANNER_SAVED_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "planner/box_index.h"
#include "planner/grid_writers.h"
#include "planner/layout.h"

namespace cairn {

// A box as it lies on disk: dense, row-major, at `file_offset` of file `file`.
struct SavedBox {
  uint32_t array = 0;
  uint32_t file = 0;
  uint64_t file_offset = 0;  // bytes from the start of the file
  Box box;
};

struct SavedFile {
  uint32_t number = 0;  // in the file's name
  uint64_t bytes = 0;   // of the whole file
};

// Where an array has a rule, its boxes follow from the rule, from the save plan (save_plan.h) and from the sizes of the
// files, which end with their data. The other arrays' boxes are listed.
struct SavedLayout {
  std::vector<ArraySpec> arrays;
  std::vector<SavedBox> boxes;  // of the arrays without a rule, not empty; grouped by array
  // Below: only where there are rules.
  GridTable grids = {};
  uint32_t world_size = 0;  // of the writers (writers.h): "ranks" here are these
  uint64_t min_split_bytes = 0;
  std::vector<SavedFile> files;  // by number; SavedBox::file is a position here
};

// A part of a box that was asked for, inside one saved box.
struct SavedPart {
  SavedBox saved;
  Box region;  // global coordinates, not empty
};

// Boxes that stand one after the other in a file: those of one class of rules (grid_writers.h) and one element width.
struct SavedStretch {
  uint64_t begin = 0, end = 0;  // bytes from the start of the file
  uint32_t rank = 0;            // the writer
  uint32_t number = 0;          // of the class
  uint32_t file = 0;            // the writer's own: GridWrite::file of the boxes that stand here
  uint32_t width = 0;           // and their WidthIndex
};

struct SavedContents {
  std::vector<SavedStretch> stretches;  // not empty
  std::vector<const SavedBox*> listed;  // boxes of arrays without a rule, not empty
};

// One thread at a time: what concerns a writer is computed when it is first needed, and kept.
class SavedIndex {
 public:
  // The layout stays the caller's, does not change and outlives the index. kDamage when an array, a box or a rule is
  // impossible, or the boxes are not grouped by array.
  static Result<SavedIndex> Make(const SavedLayout& saved);

  const SavedLayout& layout() const { return *saved_; }

  // Appends disjoint parts that make up `box`, which lies inside the array. An element that lies in several saved boxes
  // is always taken from the same one, whatever is asked for and by whom. kDamage when no saved box holds an element
  // (the message names the array and the first hole), or when a file has not the size that its boxes make.
  Status FindBoxes(uint32_t array, const Box& box, std::vector<SavedPart>* parts) const;
  Result<std::vector<SavedPart>> BoxesIn(uint32_t array, const Box& box) const;

  // What is in a file, in no order. Of a file that FindBoxes has found damaged, only the boxes that are listed.
  SavedContents ContentsOf(uint32_t file) const;

  // What the stretch's rank wrote of its class, also in other files and widths: one list for all ranks that wrote alike.
  const std::shared_ptr<const std::vector<GridWrite>>& WritesOf(const SavedStretch& stretch) const {
    return WritesOf(WriterAt(stretch.rank), stretch.rank, stretch.number);
  }
  // The box that one of them is.
  Box BoxOf(const SavedStretch& stretch, const GridWrite& write) const;

 private:
  // The files of one writer, and what it wrote of each class.
  struct Writer {
    Status status;                  // of its files
    std::vector<FileShape> shapes;  // by j
    std::vector<uint32_t> files;    // by j: position in SavedLayout::files
    std::vector<std::shared_ptr<const std::vector<GridWrite>>> writes;  // by class, at first use
  };
  explicit SavedIndex(const SavedLayout& saved);
  Status FindByRule(uint32_t array, const Box& box, std::vector<SavedPart>* parts) const;
  Result<Writer> FindFiles(uint32_t rank) const;
  Writer& WriterAt(uint32_t rank) const;
  const std::shared_ptr<const std::vector<GridWrite>>& WritesOf(Writer& writer, uint32_t rank,
                                                                uint32_t number) const;
  uint64_t BeginOf(const Writer& writer, uint32_t number, uint32_t file, size_t width) const;

  const SavedLayout* saved_;
  std::vector<size_t> first_box_;                         // by array, and one more: position in boxes
  mutable std::vector<std::unique_ptr<BoxIndex>> boxes_;  // by array, at first use
  mutable CellFinder cells_;
  std::unique_ptr<GridWriters> writers_;
  std::unordered_map<uint32_t, WidthBytes> listed_bytes_;  // by file: what the listed boxes take of it
  mutable std::unordered_map<uint32_t, std::vector<uint32_t>> listed_in_;  // by file: positions in boxes
  mutable std::unordered_map<uint32_t, Writer> writer_at_;                 // by rank, at first use
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_SAVED_LAYOUT_H_
