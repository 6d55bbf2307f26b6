// LocalSnapshot: a snapshot that an earlier life of the run left complete in the local tiers of the nodes, and which of them to go on from.
// Pure.
#ifndef CAIRN_RUNTIME_SESSION_LOCAL_SNAPSHOT_H_
#define CAIRN_RUNTIME_SESSION_LOCAL_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session/protocol.h"

namespace cairn {

struct LocalSnapshot {
  uint32_t epoch = 0;
  int64_t step = 0;   // the count of cairn_step calls that it holds
  int64_t label = 0;  // the program's own number
  uint32_t world_size = 0;
  Hash128 layout;

  struct Holder {
    std::string node;
    RescueSource source;
  };
  std::vector<Holder> holders;  // one for each rank of that life, by rank

  // Where its layout can be read.
  std::string layout_node, layout_folder;
};

// The newest by (epoch, step) of the run `run_id` that is complete: for every rank of the life that took it there is a slot of the same save
// and layout, the labels of all that had come to the boundary are equal, and one node has the layout. Snapshots that `wanted` declines are
// passed over.
std::optional<LocalSnapshot> NewestLocal(const std::vector<Inventory>& inventories, const std::string& run_id,
                                         const std::function<bool(const LocalSnapshot&)>& wanted);

// Who rescues what: the slots of each node dealt out to the ranks that are there now. By rank of this life, whose inventories these are.
std::vector<std::vector<RescueSource>> DealOut(const LocalSnapshot& snapshot,
                                               const std::vector<Inventory>& inventories);

// The sources of a snapshot that lie on one node.
std::vector<RescueSource> SourcesOn(const LocalSnapshot& snapshot, const std::string& node);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LOCAL_SNAPSHOT_H_
