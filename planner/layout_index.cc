#include "planner/layout_index.h"

#include <algorithm>
#include <optional>
#include <tuple>

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
  const GridTable& grids = layout_.grids;
  std::vector<std::optional<std::vector<Box>>> of_rule(grids.rules.size());  // by rule, at first use
  const auto boxes_of_rule = [&](uint32_t number) -> const std::vector<Box>& {
    auto& boxes = of_rule[number];
    if (boxes) return *boxes;
    boxes.emplace();
    const Grid grid(grids, number);
    auto digits = grid.DigitsOf(rank);
    for (uint32_t i = 0; digits && i < grid.pieces_per_rank(); ++i) {
      grid.SetOrdinal(i, &*digits);
      boxes->push_back(grid.BoxAt(*digits));
    }
    return *boxes;
  };
  std::vector<Piece> pieces;
  auto listed = by_rank_[rank].begin();
  for (uint32_t a = 0; a < layout_.arrays.size(); ++a) {
    if (grids.Has(a)) {
      uint32_t ordinal = 0;
      for (const Box& box : boxes_of_rule(grids.rule_of[a])) pieces.push_back({a, rank, ordinal++, box});
      continue;
    }
    for (; listed != by_rank_[rank].end() && layout_.pieces[*listed].array == a; ++listed)
      pieces.push_back(layout_.pieces[*listed]);
  }
  return pieces;
}

std::vector<Holder> LayoutIndex::HoldersByRule(uint32_t array, const Box& box) const {
  const Grid grid(layout_.grids, layout_.grids.rule_of[array]);
  std::vector<Holder> holders;
  grid.ForEachCell(box, [&](GridDigits digits) {
    const Box cell = grid.BoxAt(digits);
    const Box region = *Intersect(box, cell);
    for (uint32_t replica = 0; replica < grid.replicas(); ++replica) {
      grid.SetReplica(replica, &digits);
      holders.push_back({grid.RankAt(digits), grid.OrdinalAt(digits), cell, region});
    }
  });
  std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return std::tie(a.rank, a.ordinal) < std::tie(b.rank, b.ordinal);
  });
  return holders;
}

std::vector<Holder> LayoutIndex::HoldersOf(uint32_t array, const Box& box) const {
  if (layout_.grids.Has(array)) return HoldersByRule(array, box);
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
