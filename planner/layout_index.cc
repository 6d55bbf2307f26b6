#include "planner/layout_index.h"

#include <algorithm>
#include <optional>

namespace cairn {

LayoutIndex::LayoutIndex(const Layout& layout)
    : layout_(layout), by_rank_(layout.world_size), boxes_(layout.arrays.size()), cells_(layout.grids) {
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
  pieces.reserve(layout_.arrays.size());
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

const std::vector<uint32_t>* LayoutIndex::RanksOf(uint32_t rule, const GridCell& cell) const {
  const std::vector<uint32_t>*& known = ranks_at_[{rule, cell.rank}];
  if (known != nullptr) return known;
  const Grid grid(layout_.grids, rule);
  GridDigits digits = cell.digits;
  std::vector<uint32_t> ranks;
  ranks.reserve(grid.replicas());
  for (uint32_t replica = 0; replica < grid.replicas(); ++replica) {
    grid.SetReplica(replica, &digits);
    ranks.push_back(grid.RankAt(digits));
  }
  return known = &*ranks_.insert(std::move(ranks)).first;
}

std::vector<Holding> LayoutIndex::HoldersByRule(uint32_t array, const Box& box) const {
  std::vector<Holding> holders;
  if (box.empty()) return holders;
  const uint32_t rule = layout_.grids.rule_of[array];
  const std::vector<GridCell>& cells = cells_.CellsIn(rule, box);
  holders.reserve(cells.size());
  for (const GridCell& cell : cells)
    holders.push_back({RanksOf(rule, cell), cell.ordinal, cell.box, cell.region});
  return holders;
}

std::vector<Holding> LayoutIndex::HoldersOf(uint32_t array, const Box& box) const {
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
  std::vector<Holding> holders;
  for (const uint32_t p : met) {
    const std::vector<uint32_t>* rank = &*ranks_.insert({pieces[p].rank}).first;
    holders.push_back({rank, pieces[p].ordinal, pieces[p].box, *Intersect(box, pieces[p].box)});
  }
  return holders;
}

}  // namespace cairn
