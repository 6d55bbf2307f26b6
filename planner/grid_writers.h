// GridWriters: who writes which rows of the arrays that have a rule, and where in their files, for any one rank without
// looking at the others. What it tells follows from the rules, the arrays' order and min_split_bytes alone, so a reader
// of the index finds the writers again.
//
// 1. A piece with one holder is written whole by it.
// 2. The others are shared by their holders by SaveStream. A group is what one rank and its replicas have in common of
//    all arrays of one *class*: rules with the same first rank, the same axes of ranks and the same of them replicas.
// 3. A rank's j-th box (from 0) of each array, in the order of ordinals, goes to the rank's j-th file.
// 4. In a file, wider elements come first. Within a width the boxes of one class stand together, classes in the order of
//    their first rules, arrays in their order; boxes of arrays without a rule come last (PlaceInFiles).
#ifndef CAIRN_PLANNER_GRID_WRITERS_H_
#define CAIRN_PLANNER_GRID_WRITERS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/layout.h"
#include "planner/save_stream.h"

namespace cairn {

// Bytes by the width of elements: their alignment, 8, 4, 2 or 1.
using WidthBytes = std::array<uint64_t, 4>;
inline size_t WidthIndex(DType dtype) {
  const int width = DTypeAlignment(dtype);
  return width == 8 ? 0 : width == 4 ? 1 : width == 2 ? 2 : 3;
}

// Rows of one piece that one rank writes.
struct GridWrite {
  uint32_t array = 0;
  uint32_t ordinal = 0;   // of the piece
  uint32_t file = 0;      // j: the rank's own file, from 0
  int64_t first_row = 0;  // from the piece's first
  int64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // bytes from the first box of its class and width in the file
};

// One file of a rank. Offsets count from the first byte of data.
struct FileShape {
  struct ClassBegin {
    uint32_t number = 0;  // of the class
    WidthBytes begin{};
  };
  std::vector<ClassBegin> classes;  // of which the file holds anything, by number
  WidthBytes listed_begin{};        // of the boxes without a rule
  uint64_t bytes = 0;               // of all data

  const WidthBytes& BeginOf(uint32_t number) const;  // a class that is there
};

// One thread at a time: groups are computed when they are needed, and kept for a while.
class GridWriters {
 public:
  // Both stay the caller's, do not change and outlive this; the rules are those that ValidateLayout accepts.
  GridWriters(const std::vector<ArraySpec>& arrays, const GridTable& grids, uint64_t min_split_bytes);

  uint32_t classes() const { return static_cast<uint32_t>(classes_.size()); }
  uint32_t ClassOf(uint32_t array) const { return class_of_rule_[grids_.rule_of[array]]; }

  // What the rank writes of the arrays of one class, by array, then by ordinal. Where pieces have one holder, ranks whose pieces have the same
  // sizes write alike and share one list.
  std::shared_ptr<const std::vector<GridWrite>> WritesOf(uint32_t rank, uint32_t number) const;

  // The rank's files. `listed[j]`: bytes that the boxes without a rule take in its j-th file; files past its end have
  // none. Costs about as much as there are rules, not arrays, once the rank's groups are known.
  std::vector<FileShape> PlaceInFiles(uint32_t rank, const std::vector<WidthBytes>& listed) const;

  // Calls visit(rank, first_row, rows) for each part in which a piece of the array is written.
  template <typename Visit>
  void ForEachPart(uint32_t array, const GridCell& piece, Visit visit) const {
    if (classes_[ClassOf(array)].replicas == 1) return visit(piece.rank, int64_t{0}, RowsOf(piece.box));
    const Grid grid(grids_, grids_.rule_of[array]);
    GridDigits digits = piece.digits;
    const auto group = GroupAt(ClassOf(array), piece.rank);
    const SaveStream& stream = group->stream;
    const SaveStream::Place place = group->places[slot_of_[array] + piece.ordinal];
    uint32_t segment = stream.SegmentAt(place.begin);
    for (int64_t row = 0; row < place.rows; ++segment) {
      const int64_t end = stream.RowAt(place, stream.BorderBefore(segment + 1));
      if (end == row) continue;
      grid.SetReplica(stream.WriterOf(segment), &digits);
      visit(grid.RankAt(digits), row, end - row);
      row = end;
    }
  }

  // The array's write of this piece among WritesOf some rank and ClassOf(array), which has one.
  const GridWrite& FindWrite(const std::vector<GridWrite>& writes, uint32_t array, uint32_t ordinal) const;

 private:
  struct Class {
    uint32_t example = 0;  // one of its rules
    uint32_t replicas = 1;
    std::vector<uint32_t> rules;
    std::vector<uint32_t> array_of;  // by slot: the pieces of one rank, of all its arrays
  };
  // Among the slots of a group, now and then where an array begins.
  struct Mark {
    size_t slot = 0;
    std::vector<WidthBytes> before;  // of the arrays before it, each piece whole in the file of its ordinal
  };
  struct Group {
    SaveStream stream;
    std::vector<SaveStream::Place> places;  // by slot
    std::vector<Mark> marks;                // by slot
  };
  // What one rank writes of its group: the bytes [begin, end) of the stream, but for the moves of these borders.
  struct Share {
    std::shared_ptr<const Group> group;
    uint64_t begin = 0, end = 0;
    size_t first_slot = 0,
           end_slot = 0;  // of the pieces that lie there; all but the first and the last lie there whole

    template <typename Visit>
    void ForEachWrite(size_t from, size_t to, Visit visit) const;
  };
  using Sizes =
      std::pair<uint32_t,
                std::vector<int64_t>>;  // class; elements and rows of one rank's pieces by its rules
  std::vector<WidthBytes> BytesOf(uint32_t rank, uint32_t number) const;  // by file
  std::vector<WidthBytes> BytesOfWhole(uint32_t rank, uint32_t number) const;
  std::vector<WidthBytes> BytesOfShared(uint32_t rank, uint32_t number) const;
  std::optional<Share> ShareOf(uint32_t rank, uint32_t number) const;  // nothing: it writes nothing
  std::shared_ptr<const Group> GroupAt(uint32_t number, uint32_t first_rank) const;
  std::vector<GridWrite> WholePieces(uint32_t rank, uint32_t number) const;
  std::vector<GridWrite> SharedPieces(uint32_t rank, uint32_t number) const;

  const std::vector<ArraySpec>& arrays_;
  const GridTable& grids_;
  const uint64_t min_split_bytes_;
  std::vector<Class> classes_;
  std::vector<uint32_t> class_of_rule_;
  std::vector<WidthBytes> element_bytes_of_rule_;  // by rule and width: of one element of each of its arrays
  std::vector<size_t> slot_of_;                    // by array: of its first piece, in its class
  // By class and its replica 0, and by class and the elements and rows of its pieces: where dimensions are cut evenly, all groups of a class are
  // one. Forgotten from time to time.
  mutable std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<const Group>> groups_;
  mutable std::map<Sizes, std::shared_ptr<const Group>> groups_by_sizes_;
  mutable size_t kept_places_ = 0;
  mutable std::map<Sizes, std::shared_ptr<const std::vector<GridWrite>>> writes_by_sizes_;  // of whole pieces
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_GRID_WRITERS_H_
