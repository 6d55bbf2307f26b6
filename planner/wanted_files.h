// WantedFiles: what all ranks want of the files of a checkpoint, for the exchange plan of one of them.
//
// 1. A *region* is what one piece wants of one saved box; ranks that want the same region are one Want. All wants of a box are its Wants.
// 2. Boxes that follow from rules are not looked at one by one. Those of one class and width stand one after the other in a file, a *column*. Boxes
//    of a column whose arrays share their rules, saved and wanted, and that are the same box of them, are one *kind*: what ranks want of one of
//    them they want of all, so Wants are found once for a kind in a file. Files that were written alike have the same column, made once.
// 3. A box without a rule is a column of its own.
// 4. A column is made when it is opened: of a file with thousands of boxes mostly a few blocks count.
//
// One thread at a time; everything is found at first use and kept.
#ifndef CAIRN_PLANNER_WANTED_FILES_H_
#define CAIRN_PLANNER_WANTED_FILES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/file_region.h"
#include "planner/layout_index.h"
#include "planner/rank_set.h"

namespace cairn {

// Offsets and ends count from the first byte of the box.
struct Want {
  FileRegion region;   // of some array of the kind, in no file
  uint64_t end = 0;    // region.end()
  uint64_t reach = 0;  // the greatest end of this one and those before it
  uint64_t bytes = 0;
  const Ranks* ranks = nullptr;    // mostly the same list for the same ranks
  std::vector<uint32_t> ordinals;  // of the pieces of the rank that the plan is for
  mutable uint32_t mark = 0;       // for whoever goes through them
};

struct Wants {
  std::vector<Want> wants;           // by place in the box
  std::vector<FileRegion> distinct;  // where they overlap: their union, cut into disjoint regions
  uint64_t needed_bytes = 0;         // of the box, each once
};

struct FileColumn {
  struct Element {
    uint32_t array = 0;  // of the saved layout
    uint32_t kind = 0;
    uint64_t offset = 0;  // bytes from the first box of the column
  };
  struct Kind {
    GridWrite write;                 // of one of them, where they have a rule: which box of its rank's it is
    uint64_t bytes = 0;              // of each box
    std::vector<uint32_t> elements;  // increasing
  };
  std::vector<Element> elements;  // by offset; boxes of which nobody wants anything are left out
  std::vector<Kind> kinds;

  uint64_t End(const Element& element) const { return element.offset + kinds[element.kind].bytes; }
};

// A column where it stands in a file.
struct PlacedColumn {
  SavedStretch stretch;                             // of a box without a rule, only where it lies
  const SavedBox* listed = nullptr;                 // the box without a rule
  std::shared_ptr<const FileColumn> column;         // at first use: WantedFiles::Open
  std::vector<std::unique_ptr<const Wants>> wants;  // by kind, at first use: WantedFiles::WantsOf
};

class WantedFiles {
 public:
  // `saved_array`: by array of the wanted layout. All stay the caller's, do not change and outlive this.
  WantedFiles(const SavedIndex& saved, const LayoutIndex& wanted, const std::vector<uint32_t>& saved_array,
              uint32_t rank);

  // The file's columns, by place. They may overlap in a damaged checkpoint: CheckFile.
  std::vector<PlacedColumn>& ColumnsOf(uint32_t file);
  // kDamage when boxes of the file overlap; the message names an array.
  Status CheckFile(uint32_t file);

  const FileColumn& Open(PlacedColumn& placed);
  const Wants& WantsOf(PlacedColumn& placed, uint32_t kind);  // of an open one

  int64_t ElementBytes(uint32_t saved_array) const {
    return DTypeBytes(saved_.layout().arrays[saved_array].dtype);
  }

  // By saved array: its position in the wanted layout; kNotWanted = nobody wants it.
  static constexpr uint32_t kNotWanted = UINT32_MAX;
  uint32_t WantedArray(uint32_t saved_array) const { return wanted_array_[saved_array]; }

  // How many boxes, kinds and wants were looked at so far.
  uint64_t looks() const { return looks_; }

 private:
  using Columns =
      std::vector<std::array<std::shared_ptr<const FileColumn>, 4>>;  // of one class, by file, by width
  const Columns& ColumnsOf(const SavedStretch& stretch);
  std::shared_ptr<const FileColumn> ColumnOf(const SavedBox& listed) const;
  uint64_t BytesOf(const SavedBox& saved) const;
  size_t WidthOf(const GridWrite& write) const {
    return WidthIndex(saved_.layout().arrays[write.array].dtype);
  }
  uint32_t FirstArrayOf(const PlacedColumn& placed) const;
  Wants FindWants(const SavedBox& saved);
  void JoinReplicas(std::vector<Want>* wants);

  const SavedIndex& saved_;
  const LayoutIndex& wanted_;
  const uint32_t rank_;
  std::vector<uint32_t> wanted_array_;
  std::unordered_map<uint32_t, std::vector<PlacedColumn>> files_;
  std::map<std::shared_ptr<const std::vector<GridWrite>>, Columns> columns_;  // by writes
  std::set<Ranks> rank_lists_;
  uint64_t looks_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_WANTED_FILES_H_
