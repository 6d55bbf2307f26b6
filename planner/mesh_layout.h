// MeshLayout: what every rank holds when arrays are spread over a mesh of ranks, as programs mostly do it. For plans of a restore whose ranks have
// not registered anything yet.
//
// The ranks are the positions of a mesh, the last axis counting fastest. An axis divides one dimension of an array, or none: then the ranks
// along it are replicas. A dimension that several axes divide has as many parts as their counts make together, the first of these axes being
// the coarsest. Parts are even; where that does not work out the first ones have one element more. Parts without elements are nobody's.
#ifndef CAIRN_PLANNER_MESH_LAYOUT_H_
#define CAIRN_PLANNER_MESH_LAYOUT_H_

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/layout.h"
#include "planner/saved_layout.h"

namespace cairn {

struct MeshAxis {
  uint32_t count = 1;
  int32_t dim = -1;  // in the layout's order of dimensions; -1: replicas
};

class MeshLayout {
 public:
  explicit MeshLayout(uint32_t ranks) { layout_.world_size = ranks; }

  // The mesh begins at `first_rank` and has no more ranks than there are from there on.
  void Add(const ArraySpec& array, uint32_t first_rank, std::span<const MeshAxis> mesh);
  // Equal stretches of the flattening, one for each rank.
  void AddFlat(const ArraySpec& array);

  // An array of a checkpoint as its program may hold it on these ranks, as far as its last layout tells:
  // - what one rank held, one rank holds; what a part of the ranks held, the same share of the ranks holds;
  // - if there were replicas, and the ranks can be divided by the number of different pieces, only the number of replicas changes;
  // - else the dimension that most ranks divide is divided by more or fewer, and the others as before if the number of ranks allows that,
  //   else by none;
  // - what every rank held whole, every rank holds; blocks dealt out in turns become one block a rank;
  // - an array without a rule is dealt out in equal stretches.
  void AddAsSaved(const SavedLayout& saved, uint32_t array);

  Layout Finish() && { return std::move(layout_); }

 private:
  void AddPieces(const Dims& shape, uint32_t first_rank, std::span<const MeshAxis> mesh);
  uint32_t RuleOf(const Dims& shape, uint32_t first_rank, std::span<const MeshAxis> mesh);
  uint32_t CutsOf(uint64_t extent, uint64_t parts);

  Layout layout_;
  std::map<std::tuple<Dims, uint32_t, std::vector<std::pair<uint32_t, int32_t>>>, uint32_t> rules_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> cuts_;  // by extent and parts
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_MESH_LAYOUT_H_
