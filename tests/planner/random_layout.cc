#include "tests/planner/random_layout.h"

#include <algorithm>
#include <tuple>

#include "planner/flat_range.h"

namespace cairn {
namespace {

bool Chance(Random& random, int percent) { return Uniform(random, 1, 100) <= percent; }

// Cuts `box` in two at random, again and again.
void CutUp(Random& random, const Box& box, int cuts, std::vector<Box>* out) {
  const int d = box.rank() == 0 ? -1 : static_cast<int>(Uniform(random, 0, box.rank() - 1));
  if (cuts == 0 || d < 0 || box.extent[d] < 2) {
    out->push_back(box);
    return;
  }
  Box low = box, high = box;
  low.extent[d] = Uniform(random, 1, box.extent[d] - 1);
  high.offset[d] += low.extent[d];
  high.extent[d] -= low.extent[d];
  CutUp(random, low, cuts - 1, out);
  CutUp(random, high, cuts - 1, out);
}

}  // namespace

int64_t Uniform(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

Box RandomBox(Random& random, const Dims& shape) {
  Box box;
  for (const int64_t n : shape) {
    box.offset.push_back(Uniform(random, 0, n));
    box.extent.push_back(Uniform(random, 0, n - box.offset[box.offset.size() - 1]));
  }
  return box;
}

std::vector<ArraySpec> RandomArrays(Random& random) {
  std::vector<ArraySpec> arrays(static_cast<size_t>(Uniform(random, 1, 4)));
  for (size_t a = 0; a < arrays.size(); ++a) {
    arrays[a].name = "array" + std::to_string(a);
    arrays[a].dtype = static_cast<DType>(Uniform(random, 0, kDTypeCount - 1));
    if (a > 0 && arrays[a - 1].shape.size() > 0 &&
        Chance(random, 40)) {  // one rule, perhaps, for other types
      arrays[a].shape = arrays[a - 1].shape;
      continue;
    }
    const int64_t rank = Uniform(random, DTypeValues(arrays[a].dtype) > 1 ? 1 : 0, 4);
    const int64_t longest = rank <= 1 ? 40 : rank == 2 ? 12 : 6;
    for (int64_t d = 0; d < rank; ++d) {
      arrays[a].shape.push_back(Chance(random, 3) ? 0 : Uniform(random, 1, longest));
    }
  }
  return arrays;
}

namespace {

void AddUneven(Random& random, const ArraySpec& array, uint32_t a, uint32_t world_size,
               std::vector<Piece>* pieces) {
  std::vector<Box> boxes;
  const size_t first = pieces->size();
  CutUp(random, Box::Whole(array.shape), static_cast<int>(Uniform(random, 0, 4)), &boxes);
  if (Chance(random, 20)) boxes.push_back(RandomBox(random, array.shape));
  const int replicated_percent = static_cast<int>(Uniform(random, 0, 2)) * 50;
  for (const Box& box : boxes) {
    if (Chance(random, replicated_percent)) {
      for (uint32_t rank = 0; rank < world_size; ++rank) {
        if (Chance(random, 70)) pieces->push_back({a, rank, 0, box});
      }
    }
    pieces->push_back({a, static_cast<uint32_t>(Uniform(random, 0, world_size - 1)), 0, box});
  }
  std::shuffle(pieces->begin() + static_cast<std::ptrdiff_t>(first), pieces->end(), random);
}

// Where a dimension of n elements is cut into so many parts: evenly with a short end, the first ones longer, or anyhow.
std::vector<int64_t> RandomCuts(Random& random, int64_t n, int64_t parts) {
  std::vector<int64_t> cuts = {0};
  const int64_t kind = Uniform(random, 0, 2);
  for (int64_t i = 1; i < parts; ++i) {
    const int64_t even = std::min(n, i * ((n + parts - 1) / parts));
    const int64_t longer_first = i * (n / parts) + std::min(i, n % parts);
    cuts.push_back(kind == 0 ? even : kind == 1 ? longer_first : Uniform(random, 0, n));
  }
  cuts.push_back(n);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

// A mesh of up to three axes, some ranks beside it idle. Each axis divides a dimension or makes replicas; a dimension
// may be dealt out in turns besides (block-cyclic).
void AddMesh(Random& random, const ArraySpec& array, uint32_t a, uint32_t world_size,
             std::vector<Piece>* pieces) {
  struct Axis {
    int64_t count = 1, stride = 1;
    int dim = -1;
    int64_t weight = 0;  // parts from one to the next
  };
  std::vector<Axis> axes;
  int64_t ranks = 1;
  while (axes.size() < 3 && ranks < static_cast<int64_t>(world_size)) {
    Axis axis{.count = Uniform(random, 1, static_cast<int64_t>(world_size) / ranks), .stride = ranks};
    if (array.shape.size() > 0 && Chance(random, 70))
      axis.dim = static_cast<int>(Uniform(random, 0, array.shape.size() - 1));
    ranks *= axis.count;
    axes.push_back(axis);
  }
  const auto first_rank = static_cast<uint32_t>(Uniform(random, 0, static_cast<int64_t>(world_size) - ranks));
  const size_t mesh_axes = axes.size();
  for (int d = 0; d < array.shape.size(); ++d) {
    if (Chance(random, 20)) axes.push_back({.count = Uniform(random, 2, 3), .stride = 0, .dim = d});
  }
  std::vector<size_t> significance(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) significance[i] = i;
  std::shuffle(significance.begin(), significance.end(), random);
  std::vector<int64_t> parts(static_cast<size_t>(array.shape.size()), 1);
  for (const size_t i : significance) {
    if (axes[i].dim < 0) continue;
    int64_t& of_dim = parts[static_cast<size_t>(axes[i].dim)];
    axes[i].weight = of_dim;
    of_dim *= axes[i].count;
  }
  std::vector<std::vector<int64_t>> cuts;
  for (int d = 0; d < array.shape.size(); ++d)
    cuts.push_back(RandomCuts(random, array.shape[d], parts[static_cast<size_t>(d)]));

  int64_t local = 1;
  for (size_t i = mesh_axes; i < axes.size(); ++i) local *= axes[i].count;
  for (int64_t i = 0; i < ranks * local; ++i) {
    int64_t rest = i / local, ordinal = i % local;
    int64_t rank = first_rank;
    std::vector<int64_t> part(parts.size(), 0);
    for (size_t k = 0; k < axes.size(); ++k) {
      int64_t& number = k < mesh_axes ? rest : ordinal;
      const int64_t digit = number % axes[k].count;
      number /= axes[k].count;
      rank += digit * axes[k].stride;
      if (axes[k].dim >= 0) part[static_cast<size_t>(axes[k].dim)] += digit * axes[k].weight;
    }
    Box box;
    for (size_t d = 0; d < parts.size(); ++d) {
      const auto at = static_cast<size_t>(part[d]);
      box.offset.push_back(cuts[d][at]);
      box.extent.push_back(cuts[d][at + 1] - cuts[d][at]);
    }
    pieces->push_back({a, static_cast<uint32_t>(rank), 0, box});
  }
}

// Each rank in turn holds the next stretch of the flattening.
void AddFlat(Random& random, const ArraySpec& array, uint32_t a, uint32_t world_size,
             std::vector<Piece>* pieces) {
  const std::vector<int64_t> cuts = RandomCuts(random, array.shape.Product(), world_size);
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    for (const Box& box : CutFlatRange(array.shape, cuts[rank], cuts[rank + 1] - cuts[rank]))
      pieces->push_back({a, rank, 0, box});
  }
}

}  // namespace

Layout RandomLayout(Random& random, const std::vector<ArraySpec>& arrays, uint32_t world_size) {
  std::vector<Piece> pieces;
  for (uint32_t a = 0; a < arrays.size(); ++a) {
    const int64_t kind = Uniform(random, 0, 3);
    if (kind <= 1) {
      AddMesh(random, arrays[a], a, world_size, &pieces);
    } else if (kind == 2) {
      AddUneven(random, arrays[a], a, world_size, &pieces);
    } else {
      AddFlat(random, arrays[a], a, world_size, &pieces);
    }
  }
  return MakeLayout(world_size, arrays, std::move(pieces));
}

Layout WithoutEmptyPieces(const Layout& layout) {
  std::vector<Piece> pieces = layout.pieces;
  std::erase_if(pieces, [](const Piece& p) { return p.box.empty(); });
  return MakeLayout(layout.world_size, layout.arrays, std::move(pieces));
}

Layout MakeLayout(uint32_t world_size, std::vector<ArraySpec> arrays, std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.array, a.rank) < std::tie(b.array, b.rank);
  });
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool first = i == 0 || std::tie(pieces[i].array, pieces[i].rank) !=
                                     std::tie(pieces[i - 1].array, pieces[i - 1].rank);
    pieces[i].ordinal = first ? 0 : pieces[i - 1].ordinal + 1;
  }
  return {world_size, std::move(arrays), std::move(pieces), {}};
}

}  // namespace cairn
