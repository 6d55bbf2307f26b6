#include "planner/layout_builder.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace cairn {

Result<LayoutBuilder> LayoutBuilder::Make(std::vector<ArraySpec> arrays) {
  LayoutBuilder builder;
  builder.arrays_ = std::move(arrays);
  std::map<Dims, uint32_t> class_of_shape;
  for (uint32_t a = 0; a < builder.arrays_.size(); ++a) {
    CAIRN_RETURN_IF_ERROR(CheckArray(builder.arrays_[a]));
    const auto [it, is_new] = class_of_shape.emplace(builder.arrays_[a].shape, builder.classes_.size());
    if (is_new) builder.classes_.push_back({a, {}});
    builder.class_of_.push_back(it->second);
  }
  return builder;
}

Status LayoutBuilder::AddArray(ArraySpec array) {
  CAIRN_RETURN_IF_ERROR(CheckArray(array));
  const auto same = std::find_if(classes_.begin(), classes_.end(), [&](const Class& c) {
    return c.holders.empty() && arrays_[c.example].shape == array.shape;
  });
  class_of_.push_back(static_cast<uint32_t>(same - classes_.begin()));
  if (same == classes_.end()) classes_.push_back({static_cast<uint32_t>(arrays_.size()), {}});
  arrays_.push_back(std::move(array));
  return OkStatus();
}

Status LayoutBuilder::AddRank(std::span<const uint32_t> list_of, std::span<const std::vector<Box>> lists) {
  const uint32_t rank = ranks_++;
  if (list_of.size() != arrays_.size())
    return {Code::kInternal, "a rank's pieces are not those of all arrays"};
  // A class whose arrays have different lists here falls apart: its first list keeps it, the others get copies.
  struct Part {
    uint32_t new_class;
    uint32_t list;
  };
  std::unordered_map<uint64_t, uint32_t> class_with_list;  // (class, list) → class from now on
  std::vector<bool> kept(classes_.size(), false);
  std::vector<Part> parts;
  for (uint32_t a = 0; a < arrays_.size(); ++a) {
    if (list_of[a] >= lists.size()) return {Code::kInternal, "a rank's list of boxes is missing"};
    const uint32_t old = class_of_[a];
    const auto [it, is_new] = class_with_list.emplace(uint64_t{old} << 32 | list_of[a], old);
    if (is_new) {
      for (const Box& box : lists[list_of[a]])
        CAIRN_RETURN_IF_ERROR(CheckBox(arrays_[a], box).Annotate("rank " + std::to_string(rank)));
      if (kept[old]) {
        it->second = static_cast<uint32_t>(classes_.size());
        classes_.push_back({a, classes_[old].holders});
      } else {
        kept[old] = true;
        classes_[old].example = a;
      }
      parts.push_back({it->second, list_of[a]});
    }
    class_of_[a] = it->second;
  }
  for (const Part& part : parts) {
    RankPieces pieces{rank, {}};
    for (const Box& box : lists[part.list]) {
      if (!box.empty()) pieces.boxes.push_back(box);
    }
    if (!pieces.boxes.empty()) classes_[part.new_class].holders.push_back(std::move(pieces));
  }
  return OkStatus();
}

Result<Layout> LayoutBuilder::Finish() && {
  Layout layout;
  layout.world_size = ranks_;
  layout.arrays = std::move(arrays_);
  GridTable& grids = layout.grids;
  std::map<Cuts, uint32_t> known_cuts;
  std::vector<uint32_t> rule_of_class;
  for (const Class& c : classes_) {
    auto found = FindRule(layout.arrays[c.example].shape, c.holders);
    rule_of_class.push_back(found ? static_cast<uint32_t>(grids.rules.size()) : kNoRule);
    if (!found) continue;
    GridRule& rule = grids.rules.emplace_back(GridRule{found->first_rank, std::move(found->axes), {}});
    for (Cuts& cuts : found->cuts) {
      const auto [it, is_new] = known_cuts.emplace(cuts, grids.cuts.size());
      if (is_new) grids.cuts.push_back(std::move(cuts));
      rule.cuts.push_back(it->second);
    }
  }
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    grids.rule_of.push_back(rule_of_class[class_of_[a]]);
    if (grids.rule_of.back() != kNoRule) continue;
    for (const RankPieces& holder : classes_[class_of_[a]].holders) {
      for (uint32_t i = 0; i < holder.boxes.size(); ++i)
        layout.pieces.push_back({a, holder.rank, i, holder.boxes[i]});
    }
  }
  CAIRN_RETURN_IF_ERROR(ValidateLayout(layout));
  return layout;
}

Result<Layout> FindRules(const Layout& layout) {
  CAIRN_ASSIGN_OR_RETURN(LayoutBuilder builder, LayoutBuilder::Make(layout.arrays));
  const auto arrays = static_cast<uint32_t>(layout.arrays.size());
  std::vector<std::vector<std::vector<Box>>> boxes(layout.world_size,
                                                   std::vector<std::vector<Box>>(arrays));  // by rank, array
  for (const Piece& piece : layout.pieces) boxes[piece.rank][piece.array].push_back(piece.box);
  for (const std::vector<std::vector<Box>>& of_rank : boxes) {
    std::map<std::vector<Box>, uint32_t> known;
    std::vector<std::vector<Box>> lists;
    std::vector<uint32_t> list_of;
    for (const std::vector<Box>& list : of_rank) {
      const auto [it, is_new] = known.emplace(list, lists.size());
      if (is_new) lists.push_back(list);
      list_of.push_back(it->second);
    }
    CAIRN_RETURN_IF_ERROR(builder.AddRank(list_of, lists));
  }
  return std::move(builder).Finish();
}

Layout SelectArrays(const Layout& layout, const std::vector<uint32_t>& arrays) {
  Layout out;
  out.world_size = layout.world_size;
  out.grids.cuts = layout.grids.cuts;
  out.grids.rules = layout.grids.rules;
  auto piece = layout.pieces.begin();
  for (const uint32_t array : arrays) {
    const auto number = static_cast<uint32_t>(out.arrays.size());
    out.arrays.push_back(layout.arrays[array]);
    out.grids.rule_of.push_back(layout.grids.Has(array) ? layout.grids.rule_of[array] : kNoRule);
    while (piece != layout.pieces.end() && piece->array < array) ++piece;
    for (; piece != layout.pieces.end() && piece->array == array; ++piece) {
      out.pieces.push_back(*piece);
      out.pieces.back().array = number;
    }
  }
  return out;
}

}  // namespace cairn
