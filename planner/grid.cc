#include "planner/grid.h"

#include <algorithm>

namespace cairn {
namespace {

// The axes that divide one dimension must count its parts like the digits of a number: each part once.
bool CountsEachPartOnce(const std::vector<GridAxis>& axes, int32_t dim, uint64_t parts) {
  std::vector<GridAxis> of_dim;
  for (const GridAxis& axis : axes) {
    if (axis.dim == dim) of_dim.push_back(axis);
  }
  std::sort(of_dim.begin(), of_dim.end(),
            [](const GridAxis& a, const GridAxis& b) { return a.part_stride < b.part_stride; });
  uint64_t product = 1;
  for (const GridAxis& axis : of_dim) {
    if (axis.part_stride != product) return false;
    product *= axis.count;
    if (product > parts) return false;
  }
  return product == parts;
}

// Axes in order, and no two digits give one rank. The rank past the last one must not exceed the world size.
bool SelectsEachRankOnce(uint32_t first_rank, const std::vector<GridAxis>& axes, uint64_t world_size) {
  if (axes.size() > kMaxAxes) return false;
  uint64_t reach = 0;  // from the first rank to the last one that the inner axes give
  uint64_t pieces = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->count < 2) return false;
    if (axis->rank_stride == 0) {
      if (reach > 0 || axis->dim < 0) return false;
      pieces *= axis->count;
      if (pieces > UINT32_MAX) return false;
      continue;
    }
    if (axis->rank_stride <= reach) return false;
    reach += uint64_t{axis->count - 1} * axis->rank_stride;
    if (reach > UINT32_MAX) return false;
  }
  return first_rank + reach < world_size;
}

template <typename GetParts>
bool IsPossible(uint32_t first_rank, const std::vector<GridAxis>& axes, size_t dims, uint64_t world_size,
                GetParts parts) {
  if (dims > kMaxRank || !SelectsEachRankOnce(first_rank, axes, world_size)) return false;
  for (const GridAxis& axis : axes) {
    if (axis.dim < -1 || axis.dim >= static_cast<int32_t>(dims)) return false;
    if (axis.dim < 0 && axis.part_stride != 0) return false;
  }
  for (size_t d = 0; d < dims; ++d) {
    if (!CountsEachPartOnce(axes, static_cast<int32_t>(d), parts(d))) return false;
  }
  return true;
}

// The parts of one dimension, if the pieces of all ranks are parts of one division of it.
std::optional<Cuts> FindCuts(int dim, int64_t extent, std::span<const RankPieces> holders) {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // (offset, extent)
  for (const RankPieces& holder : holders) {
    for (const Box& box : holder.boxes) ranges.emplace_back(box.offset[dim], box.extent[dim]);
  }
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  int64_t end = 0;
  std::vector<int64_t> lengths;
  for (const auto& [offset, length] : ranges) {
    if (offset != end) return std::nullopt;
    end += length;
    lengths.push_back(length);
  }
  if (end != extent) return std::nullopt;
  return Cuts::FromLengths(lengths);
}

}  // namespace

Status CheckGrids(const GridTable& grids, uint32_t world_size) {
  for (size_t r = 0; r < grids.rules.size(); ++r) {
    const GridRule& rule = grids.rules[r];
    const bool known = std::all_of(rule.cuts.begin(), rule.cuts.end(),
                                   [&](uint32_t cuts) { return cuts < grids.cuts.size(); });
    if (!known || !IsPossible(rule.first_rank, rule.axes, rule.cuts.size(), world_size,
                              [&](size_t d) { return grids.cuts[rule.cuts[d]].parts(); })) {
      return {Code::kInvalid, "grid rule " + std::to_string(r) + " is impossible with " +
                                  std::to_string(world_size) + " ranks"};
    }
  }
  for (const uint32_t rule : grids.rule_of) {
    if (rule != kNoRule && rule >= grids.rules.size())
      return {Code::kInvalid, "an array has grid rule " + std::to_string(rule) + ", of " +
                                  std::to_string(grids.rules.size())};
  }
  return OkStatus();
}

Dims Grid::shape() const {
  Dims shape;
  for (const uint32_t cuts : rule_->cuts) shape.push_back(table_->cuts[cuts].extent());
  return shape;
}

uint64_t Grid::cells() const {
  uint64_t cells = 1;
  for (const uint32_t cuts : rule_->cuts) cells *= table_->cuts[cuts].parts();
  return cells;
}

std::optional<GridDigits> Grid::DigitsOf(uint32_t rank) const {
  if (rank < rule_->first_rank) return std::nullopt;
  GridDigits digits{};
  uint32_t rest = rank - rule_->first_rank;
  for (size_t i = 0; i < rule_->axes.size(); ++i) {
    const GridAxis& axis = rule_->axes[i];
    if (axis.rank_stride == 0) break;
    digits[i] = std::min(rest / axis.rank_stride, axis.count - 1);
    rest -= digits[i] * axis.rank_stride;
  }
  if (rest != 0) return std::nullopt;
  return digits;
}

uint32_t Grid::RankAt(const GridDigits& digits) const {
  uint32_t rank = rule_->first_rank;
  for (size_t i = 0; i < rule_->axes.size(); ++i) rank += digits[i] * rule_->axes[i].rank_stride;
  return rank;
}

Box Grid::BoxAt(const GridDigits& digits) const {
  std::array<uint32_t, kMaxRank> part{};
  for (size_t i = 0; i < rule_->axes.size(); ++i) {
    const GridAxis& axis = rule_->axes[i];
    if (axis.dim >= 0) part[static_cast<size_t>(axis.dim)] += digits[i] * axis.part_stride;
  }
  Box box;
  for (size_t d = 0; d < rule_->cuts.size(); ++d) {
    const Cuts::Part range = CutsOf(static_cast<int>(d)).At(part[d]);
    box.offset.push_back(range.offset);
    box.extent.push_back(range.extent);
  }
  return box;
}

std::vector<GridCell> Grid::CellsIn(const Box& box) const {
  std::vector<GridCell> cells;
  Dims first, last;
  for (int d = 0; d < box.rank(); ++d) {
    const Cuts& cuts = CutsOf(d);
    first.push_back(cuts.PartOf(box.offset[d]));
    last.push_back(cuts.PartOf(box.offset[d] + box.extent[d] - 1));
  }
  for (Dims at = first;;) {
    GridCell& cell = cells.emplace_back();
    cell.digits = DigitsAt(at);
    cell.rank = RankAt(cell.digits);
    cell.ordinal = OrdinalAt(cell.digits);
    cell.box = BoxAt(cell.digits);
    cell.region = *Intersect(box, cell.box);
    int d = at.size() - 1;
    for (; d >= 0 && at[d] == last[d]; --d) at[d] = first[d];
    if (d < 0) return cells;
    ++at[d];
  }
}

const std::vector<GridCell>& CellFinder::CellsIn(uint32_t rule, const Box& box) {
  Found& last = last_[rule];
  if (last.cells.empty() || !(last.box == box)) last = {box, Grid(*table_, rule).CellsIn(box)};
  return last.cells;
}

uint32_t Grid::Count(Select select) const {
  uint32_t count = 1;
  for (const GridAxis& axis : rule_->axes) {
    if (select(axis)) count *= axis.count;
  }
  return count;
}

uint32_t Grid::Get(const GridDigits& digits, Select select) const {
  uint32_t number = 0;
  for (size_t i = 0; i < rule_->axes.size(); ++i) {
    if (select(rule_->axes[i])) number = number * rule_->axes[i].count + digits[i];
  }
  return number;
}

void Grid::Set(uint32_t number, Select select, GridDigits* digits) const {
  for (size_t i = rule_->axes.size(); i-- > 0;) {
    const GridAxis& axis = rule_->axes[i];
    if (!select(axis)) continue;
    (*digits)[i] = number % axis.count;
    number /= axis.count;
  }
}

GridDigits Grid::DigitsAt(const Dims& parts) const {
  GridDigits digits{};
  for (size_t i = 0; i < rule_->axes.size(); ++i) {
    const GridAxis& axis = rule_->axes[i];
    if (axis.dim >= 0) digits[i] = static_cast<uint32_t>(parts[axis.dim]) / axis.part_stride % axis.count;
  }
  return digits;
}

// 1. The cuts of each dimension: the pieces' ranges in it must be the parts of one division.
// 2. All pieces in the order of ranks, then of ordinals, are a table F(i) = (rank, part of every dimension). A rule is
//    what makes F a sum over the digits of i. The axes are found from the innermost on: the longest stretch F(0), F(s),
//    F(2s), … of equal differences is one axis (two neighbouring axes that continue each other are one).
// 3. F is compared with the sum everywhere.
std::optional<FoundRule> FindRule(const Dims& shape, std::span<const RankPieces> holders) {
  if (holders.empty()) return std::nullopt;
  FoundRule found;
  found.first_rank = holders[0].rank;
  for (int d = 0; d < shape.size(); ++d) {
    std::optional<Cuts> cuts = FindCuts(d, shape[d], holders);
    if (!cuts) return std::nullopt;
    found.cuts.push_back(*std::move(cuts));
  }

  using Row = std::array<int64_t, kMaxRank + 1>;  // the rank, then the parts
  std::vector<Row> f;
  for (const RankPieces& holder : holders) {
    if (holder.boxes.size() != holders[0].boxes.size()) return std::nullopt;
    for (const Box& box : holder.boxes) {
      Row& row = f.emplace_back();
      row[0] = holder.rank;
      for (int d = 0; d < shape.size(); ++d)
        row[static_cast<size_t>(d) + 1] = found.cuts[static_cast<size_t>(d)].PartOf(box.offset[d]);
    }
  }
  const auto difference = [&](size_t i) {
    Row row{};
    for (size_t k = 0; k < row.size(); ++k) row[k] = f[i][k] - f[0][k];
    return row;
  };
  for (size_t step = 1; step < f.size();) {
    const Row first = difference(step);
    uint32_t count = 2;
    for (; step * count < f.size(); ++count) {
      const Row row = difference(step * count);
      if (!std::equal(row.begin(), row.end(), first.begin(),
                      [&](int64_t a, int64_t b) { return a == b * static_cast<int64_t>(count); }))
        break;
    }
    GridAxis axis{.count = count, .rank_stride = static_cast<uint32_t>(first[0])};
    for (size_t k = 1; k < first.size(); ++k) {
      if (first[k] == 0) continue;
      if (first[k] < 0 || axis.dim >= 0) return std::nullopt;
      axis.dim = static_cast<int32_t>(k) - 1;
      axis.part_stride = static_cast<uint32_t>(first[k]);
    }
    found.axes.push_back(axis);
    step *= count;
    if (f.size() % step != 0) return std::nullopt;
  }
  for (size_t i = 0; i < f.size(); ++i) {
    Row sum = f[0];
    size_t rest = i;
    for (const GridAxis& axis : found.axes) {
      const auto digit = static_cast<int64_t>(rest % axis.count);
      rest /= axis.count;
      sum[0] += digit * axis.rank_stride;
      if (axis.dim >= 0) sum[static_cast<size_t>(axis.dim) + 1] += digit * axis.part_stride;
    }
    if (sum != f[i]) return std::nullopt;
  }
  std::reverse(found.axes.begin(), found.axes.end());
  // The first piece is the first cell of every dimension, or some cells would have no piece.
  if (!IsPossible(found.first_rank, found.axes, found.cuts.size(), uint64_t{1} << 32,
                  [&](size_t d) { return found.cuts[d].parts(); }) ||
      !std::all_of(f[0].begin() + 1, f[0].end(), [](int64_t part) { return part == 0; }))
    return std::nullopt;
  return found;
}

}  // namespace cairn
