// LayoutIndex: what a layout says about one rank, and who holds a part of the global array.
//
// Immutable after construction except for what it computes at first use: one thread at a time.
#ifndef CAIRN_PLANNER_LAYOUT_INDEX_H_
#define CAIRN_PLANNER_LAYOUT_INDEX_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "planner/box_index.h"
#include "planner/layout.h"

namespace cairn {

// Pieces of one array that are the same box: one, or, by a rule, those of all its holders.
struct Holding {
  const std::vector<uint32_t>* ranks =
      nullptr;           // by increasing number; the index keeps it, mostly one list for equal ranks
  uint32_t ordinal = 0;  // Piece::ordinal, on each of them
  Box box;
  Box region;  // the part of it that was asked for, not empty
};

class LayoutIndex {
 public:
  // The layout stays the caller's, does not change and outlives the index. It is valid (ValidateLayout).
  explicit LayoutIndex(const Layout& layout);

  const Layout& layout() const { return layout_; }

  // The pieces of one rank, by array, then by ordinal.
  std::vector<Piece> PiecesOf(uint32_t rank) const;

  // All pieces of the array that meet the box: of a rule cell by cell, else by rank and ordinal.
  std::vector<Holding> HoldersOf(uint32_t array, const Box& box) const;

 private:
  std::vector<Holding> HoldersByRule(uint32_t array, const Box& box) const;
  const std::vector<uint32_t>* RanksOf(uint32_t rule, const GridCell& cell) const;

  const Layout& layout_;
  std::vector<size_t> first_piece_;             // by array, and one more: position in layout_.pieces
  std::vector<std::vector<uint32_t>> by_rank_;  // positions in layout_.pieces
  mutable std::vector<std::unique_ptr<BoxIndex>> boxes_;  // by array, at first use
  mutable CellFinder cells_;
  mutable std::set<std::vector<uint32_t>> ranks_;  // every list that was ever given
  mutable std::map<std::pair<uint32_t, uint32_t>, const std::vector<uint32_t>*>
      ranks_at_;  // by rule and replica 0
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_LAYOUT_INDEX_H_
