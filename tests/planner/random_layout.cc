#include "tests/planner/random_layout.h"

#include <algorithm>
#include <tuple>

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
    const int64_t rank = Uniform(random, 0, 4);
    const int64_t longest = rank <= 1 ? 40 : rank == 2 ? 12 : 6;
    for (int64_t d = 0; d < rank; ++d) {
      arrays[a].shape.push_back(Chance(random, 3) ? 0 : Uniform(random, 1, longest));
    }
  }
  return arrays;
}

Layout RandomLayout(Random& random, const std::vector<ArraySpec>& arrays, uint32_t world_size) {
  std::vector<Piece> pieces;
  const auto random_rank = [&] { return static_cast<uint32_t>(Uniform(random, 0, world_size - 1)); };
  for (uint32_t a = 0; a < arrays.size(); ++a) {
    std::vector<Box> boxes;
    CutUp(random, Box::Whole(arrays[a].shape), static_cast<int>(Uniform(random, 0, 4)), &boxes);
    if (Chance(random, 20)) boxes.push_back(RandomBox(random, arrays[a].shape));
    const int replicated_percent = static_cast<int>(Uniform(random, 0, 2)) * 50;
    for (const Box& box : boxes) {
      if (Chance(random, replicated_percent)) {
        for (uint32_t rank = 0; rank < world_size; ++rank) {
          if (Chance(random, 70)) pieces.push_back({a, rank, 0, box});
        }
      }
      pieces.push_back({a, random_rank(), 0, box});
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
  }
  return MakeLayout(world_size, arrays, std::move(pieces));
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
  return {world_size, std::move(arrays), std::move(pieces)};
}

}  // namespace cairn
