#include "planner/layout.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "planner/box_index.h"

namespace cairn {
namespace {

Status InvalidArray(const ArraySpec& array, const std::string& what) {
  return {Code::kInvalid, "array '" + array.name + "' of shape " + array.shape.ToString() + ": " + what};
}

Status CheckPieceOrder(const Layout& layout) {
  std::tuple<uint32_t, uint32_t, int64_t> last(0, 0, -1);
  for (const Piece& p : layout.pieces) {
    if (p.array >= layout.arrays.size()) {
      return {Code::kInvalid, "a piece of rank " + std::to_string(p.rank) + " names array number " +
                                  std::to_string(p.array) + ", of " + std::to_string(layout.arrays.size())};
    }
    const ArraySpec& array = layout.arrays[p.array];
    if (layout.grids.Has(p.array)) return InvalidArray(array, "it has a rule and yet a piece");
    if (p.rank >= layout.world_size) {
      return InvalidArray(array, "a piece belongs to rank " + std::to_string(p.rank) +
                                     ", the world size is " + std::to_string(layout.world_size));
    }
    const std::tuple<uint32_t, uint32_t, int64_t> key(p.array, p.rank, p.ordinal);
    if (key <= last) {
      return InvalidArray(array, "piece " + std::to_string(p.ordinal) + " of rank " + std::to_string(p.rank) +
                                     " is listed twice or out of order");
    }
    last = key;
  }
  return OkStatus();
}

}  // namespace

Status CheckArray(const ArraySpec& array) {
  if (array.name.empty()) return {Code::kInvalid, "an array has no name"};
  const int values = DTypeValues(array.dtype);
  if (values > 1 && array.shape.size() == 0) {
    return InvalidArray(array, "an element of " + std::string(DTypeName(array.dtype)) + " is " +
                                   std::to_string(values) +
                                   " values, so it has at least one dimension: give it the shape [1]");
  }
  int64_t limit = std::numeric_limits<int64_t>::max() / std::max(DTypeBytes(array.dtype), values);
  for (const int64_t extent : array.shape) {
    if (extent < 0) return InvalidArray(array, "an extent is negative");
    if (extent > limit) return InvalidArray(array, "its size in bytes does not fit 63 bits");
    if (extent > 0) limit /= extent;
  }
  return OkStatus();
}

Status CheckBox(const ArraySpec& array, const Box& box) {
  const int rank = array.shape.size();
  if (box.offset.size() != rank || box.extent.size() != rank) {
    return InvalidArray(array, "a box has " + std::to_string(box.extent.size()) + " dimensions");
  }
  for (int d = 0; d < rank; ++d) {
    if (box.offset[d] < 0 || box.extent[d] < 0 || box.offset[d] > array.shape[d] ||
        box.extent[d] > array.shape[d] - box.offset[d]) {
      return InvalidArray(array, "offset " + box.offset.ToString() + " with extent " + box.extent.ToString() +
                                     " reaches outside");
    }
  }
  return OkStatus();
}

Status ValidateLayout(const Layout& layout) {
  std::unordered_set<std::string_view> names;
  for (const ArraySpec& array : layout.arrays) {
    CAIRN_RETURN_IF_ERROR(CheckArray(array));
    if (!names.insert(array.name).second) return InvalidArray(array, "another array has the same name");
  }
  CAIRN_RETURN_IF_ERROR(CheckGrids(layout.grids, layout.world_size));
  CAIRN_RETURN_IF_ERROR(CheckPieceOrder(layout));

  auto piece = layout.pieces.begin();
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    const ArraySpec& array = layout.arrays[a];
    if (layout.grids.Has(a)) {
      const Dims shape = Grid(layout.grids, layout.grids.rule_of[a]).shape();
      if (!(shape == array.shape)) return InvalidArray(array, "its rule is for shape " + shape.ToString());
      continue;
    }
    std::vector<const Box*> boxes;
    for (; piece != layout.pieces.end() && piece->array == a; ++piece) {
      CAIRN_RETURN_IF_ERROR(CheckBox(array, piece->box).Annotate("rank " + std::to_string(piece->rank)));
      boxes.push_back(&piece->box);
    }
    const BoxIndex::Cover cover = BoxIndex(boxes).CoverOf(Box::Whole(array.shape));
    if (!cover.holes.empty()) {
      return InvalidArray(array, "no rank holds elements " + cover.holes[0].ToString() +
                                     "; the pieces of all ranks together must cover the array");
    }
  }
  return OkStatus();
}

}  // namespace cairn
