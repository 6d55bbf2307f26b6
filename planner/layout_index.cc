#include "planner/layout_index.h"

#include <algorithm>

namespace cairn {

LayoutIndex::LayoutIndex(const Layout& layout)
    : layout_(layout), by_rank_(layout.world_size), boxes_(layout.arrays.size()) {
  size_t piece = 0;
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    first_piece_.push_back(piece);
    while (piece < layout.pieces.size() && layout.pieces[piece].array == a) ++piece;
  }
  first_piece_.push_back(piece);
  for (uint32_t p = 0; p < layout.pieces.size(); ++p) by_rank_[layout.pieces[p].rank].push_back(p);
}

std::vector<Piece> LayoutIndex::PiecesOf(uint32_t rank) const {
  std::vector<Piece> pieces;
  for (const uint32_t p : by_rank_[rank]) pieces.push_back(layout_.pieces[p]);
  return pieces;
}

std::vector<Holder> LayoutIndex::HoldersOf(uint32_t array, const Box& box) const {
  const Piece* const pieces = layout_.pieces.data() + first_piece_[array];
  if (!boxes_[array]) {
    std::vector<const Box*> boxes;
    for (size_t p = first_piece_[array]; p < first_piece_[array + 1]; ++p)
      boxes.push_back(&layout_.pieces[p].box);
    boxes_[array] = std::make_unique<BoxIndex>(boxes);
  }
  std::vector<uint32_t> met = boxes_[array]->Meeting(box);
  std::sort(met.begin(), met.end());
  std::vector<Holder> holders;
  for (const uint32_t p : met) {
    holders.push_back({pieces[p].rank, pieces[p].ordinal, pieces[p].box, *Intersect(box, pieces[p].box)});
  }
  return holders;
}

}  // namespace cairn
