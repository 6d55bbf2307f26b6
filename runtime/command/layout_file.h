// The file of `cairn plan --layout`: how the arrays of a checkpoint are spread over ranks that do not exist yet.
//
//     {"mesh": {"dp": 3, "tp": 2},
//      "arrays": {"*.wq.weight": ["dp", "tp"], "*.wo.weight": [null, ["dp", "tp"]], "*.bias": [], "flat.*": "flat", "optim.*": null}}
//
// `mesh`: the axes of the ranks, the last one counting fastest; together they have as many positions as there are ranks. Without it there is
// one axis, "ranks". `arrays`: from a name, in which one * stands for any text, to what divides each dimension (as the program sees them): an
// axis, several of them (the first is the coarsest), or null; missing ones are null. Axes that divide nothing make replicas. "flat": equal
// stretches of the flattening over all ranks. null: not loaded. The first member that fits an array counts; one that none fits is
// spread as it was saved (MeshLayout::AddAsSaved).
#ifndef CAIRN_RUNTIME_COMMAND_LAYOUT_FILE_H_
#define CAIRN_RUNTIME_COMMAND_LAYOUT_FILE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "planner/layout.h"
#include "planner/saved_layout.h"

namespace cairn {

struct WantedLayout {
  Layout layout;
  std::vector<uint32_t> saved_array;  // by array of the layout: position in the checkpoint
};

// All arrays as they were saved.
WantedLayout LayoutAsSaved(const SavedLayout& saved, uint32_t ranks);

// kInvalid with what is wrong in `json`.
Result<WantedLayout> ParseLayoutFile(std::string_view json, const SavedLayout& saved, uint32_t ranks);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_LAYOUT_FILE_H_
