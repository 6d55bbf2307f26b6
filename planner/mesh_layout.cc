#include "planner/mesh_layout.h"

#include <algorithm>

#include "planner/flat_range.h"

namespace cairn {
namespace {

Cuts::Part EvenPart(int64_t extent, int64_t parts, int64_t part) {
  const int64_t length = extent / parts, longer = extent % parts;
  return {part * length + std::min(part, longer), length + (part < longer ? 1 : 0)};
}

uint64_t PartsOf(int dim, std::span<const MeshAxis> mesh) {
  uint64_t parts = 1;
  for (const MeshAxis& axis : mesh) {
    if (axis.dim == dim) parts *= axis.count;
  }
  return parts;
}

}  // namespace

void MeshLayout::Add(const ArraySpec& array, uint32_t first_rank, std::span<const MeshAxis> mesh) {
  bool every_part_has_elements = mesh.size() <= kMaxAxes;
  for (int d = 0; d < array.shape.size(); ++d) {
    every_part_has_elements =
        every_part_has_elements && PartsOf(d, mesh) <= static_cast<uint64_t>(array.shape[d]);
  }
  layout_.arrays.push_back(array);
  layout_.grids.rule_of.push_back(every_part_has_elements ? RuleOf(array.shape, first_rank, mesh) : kNoRule);
  if (!every_part_has_elements) AddPieces(array.shape, first_rank, mesh);
}

uint32_t MeshLayout::RuleOf(const Dims& shape, uint32_t first_rank, std::span<const MeshAxis> mesh) {
  std::vector<std::pair<uint32_t, int32_t>> axes;
  for (const MeshAxis& axis : mesh) axes.emplace_back(axis.count, axis.dim);
  const auto [known, is_new] =
      rules_.try_emplace({shape, first_rank, std::move(axes)}, layout_.grids.rules.size());
  if (!is_new) return known->second;
  GridRule rule;
  rule.first_rank = first_rank;
  uint32_t rank_stride = 1;
  std::vector<uint32_t> part_stride(static_cast<size_t>(shape.size()), 1);
  for (size_t i = mesh.size(); i-- > 0;) {
    const auto [count, dim] = mesh[i];
    if (count == 1) continue;
    uint32_t none = 0;
    uint32_t& stride = dim < 0 ? none : part_stride[static_cast<size_t>(dim)];
    rule.axes.push_back({count, rank_stride, stride, dim});
    rank_stride *= count;
    stride *= count;
  }
  std::reverse(rule.axes.begin(), rule.axes.end());
  for (int d = 0; d < shape.size(); ++d)
    rule.cuts.push_back(CutsOf(static_cast<uint64_t>(shape[d]), PartsOf(d, mesh)));
  layout_.grids.rules.push_back(std::move(rule));
  return known->second;
}

uint32_t MeshLayout::CutsOf(uint64_t extent, uint64_t parts) {
  const auto [known, is_new] = cuts_.try_emplace({extent, parts}, layout_.grids.cuts.size());
  if (!is_new) return known->second;
  std::vector<int64_t> lengths;
  for (uint64_t part = 0; part < parts; ++part)
    lengths.push_back(
        EvenPart(static_cast<int64_t>(extent), static_cast<int64_t>(parts), static_cast<int64_t>(part))
            .extent);
  layout_.grids.cuts.push_back(Cuts::FromLengths(lengths));
  return known->second;
}

void MeshLayout::AddPieces(const Dims& shape, uint32_t first_rank, std::span<const MeshAxis> mesh) {
  const auto array = static_cast<uint32_t>(layout_.arrays.size() - 1);
  uint32_t ranks = 1;
  for (const MeshAxis& axis : mesh) ranks *= axis.count;
  for (uint32_t position = 0; position < ranks; ++position) {
    std::vector<int64_t> part(static_cast<size_t>(shape.size()), 0);
    uint32_t stride = ranks;
    for (const MeshAxis& axis : mesh) {
      stride /= axis.count;
      if (axis.dim < 0) continue;
      int64_t& of_dim = part[static_cast<size_t>(axis.dim)];
      of_dim = of_dim * axis.count + position / stride % axis.count;
    }
    Box box;
    for (int d = 0; d < shape.size(); ++d) {
      const auto range =
          EvenPart(shape[d], static_cast<int64_t>(PartsOf(d, mesh)), part[static_cast<size_t>(d)]);
      box.offset.push_back(range.offset);
      box.extent.push_back(range.extent);
    }
    if (!box.empty()) layout_.pieces.push_back({array, first_rank + position, 0, box});
  }
}

void MeshLayout::AddFlat(const ArraySpec& array) {
  const auto number = static_cast<uint32_t>(layout_.arrays.size());
  layout_.arrays.push_back(array);
  layout_.grids.rule_of.push_back(kNoRule);
  for (uint32_t rank = 0; rank < layout_.world_size; ++rank) {
    const auto stretch = EvenPart(array.shape.Product(), layout_.world_size, rank);
    if (stretch.extent == 0) continue;
    uint32_t ordinal = 0;
    for (const Box& box : CutFlatRange(array.shape, stretch.offset, stretch.extent))
      layout_.pieces.push_back({number, rank, ordinal++, box});
  }
}

namespace {

// The axes of ranks of a rule, those of one dimension as one.
std::vector<MeshAxis> MeshOf(const GridRule& rule) {
  std::vector<MeshAxis> mesh;
  for (const GridAxis& axis : rule.axes) {
    if (axis.rank_stride == 0) continue;
    const auto known =
        std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis& m) { return m.dim == axis.dim; });
    if (known == mesh.end()) {
      mesh.push_back({axis.count, axis.dim});
    } else {
      known->count *= axis.count;
    }
  }
  return mesh;
}

void Resize(std::vector<MeshAxis>* mesh, uint32_t ranks) {
  const auto by_replicas = [](const MeshAxis& axis) { return axis.dim < 0; };
  const auto replicas = std::find_if(mesh->begin(), mesh->end(), by_replicas);
  uint32_t pieces = 1;
  for (const MeshAxis& axis : *mesh) pieces *= axis.dim < 0 ? 1 : axis.count;
  if (replicas != mesh->end() && ranks % pieces == 0) {
    replicas->count = ranks / pieces;
    return;
  }
  std::erase_if(*mesh, by_replicas);
  const auto finest = std::max_element(
      mesh->begin(), mesh->end(), [](const MeshAxis& a, const MeshAxis& b) { return a.count < b.count; });
  const uint32_t others = pieces / finest->count;
  if (ranks % others == 0) {
    finest->count = ranks / others;
  } else {
    *mesh = {{ranks, finest->dim}};
  }
}

}  // namespace

void MeshLayout::AddAsSaved(const SavedLayout& saved, uint32_t array) {
  if (!saved.grids.Has(array)) return AddFlat(saved.arrays[array]);
  const GridRule& rule = saved.grids.rules[saved.grids.rule_of[array]];
  const uint32_t ranks = layout_.world_size;
  const auto share = [&](uint64_t of) { return static_cast<uint32_t>(of * ranks / saved.world_size); };
  std::vector<MeshAxis> mesh = MeshOf(rule);
  uint64_t holders = 1;
  for (const MeshAxis& axis : mesh) holders *= axis.count;
  const uint32_t now = holders == 1 ? 1 : std::max(1u, share(holders));
  if (!mesh.empty()) Resize(&mesh, now);
  Add(saved.arrays[array], std::min(share(rule.first_rank), ranks - now), mesh);
}

}  // namespace cairn
