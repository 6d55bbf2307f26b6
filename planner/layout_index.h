// LayoutIndex: what a layout says about one rank, and who holds a part of the global array.
//
// Immutable after construction except for what it computes at first use: one thread at a time.
#ifndef CAIRN_PLANNER_LAYOUT_INDEX_H_
#define CAIRN_PLANNER_LAYOUT_INDEX_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/box_index.h"
#include "planner/layout.h"

namespace cairn {

// A piece that meets the box that was asked for.
struct Holder {
  uint32_t rank = 0;
  uint32_t ordinal = 0;  // Piece::ordinal
  Box box;               // the whole piece
  Box region;            // the common part, not empty
};

class LayoutIndex {
 public:
  // The layout stays the caller's, does not change and outlives the index. It is valid (ValidateLayout).
  explicit LayoutIndex(const Layout& layout);

  // The pieces of one rank, by array, then by ordinal.
  std::vector<Piece> PiecesOf(uint32_t rank) const;

  // All pieces of the array that meet the box, by rank, then by ordinal. Replicas are all named.
  std::vector<Holder> HoldersOf(uint32_t array, const Box& box) const;

 private:
  std::vector<Holder> HoldersByRule(uint32_t array, const Box& box) const;

  const Layout& layout_;
  std::vector<size_t> first_piece_;             // by array, and one more: position in layout_.pieces
  std::vector<std::vector<uint32_t>> by_rank_;  // positions in layout_.pieces
  mutable std::vector<std::unique_ptr<BoxIndex>> boxes_;  // by array, at first use
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_LAYOUT_INDEX_H_
