// LocalSnapshot: a snapshot that an earlier life of the run left complete in the local tiers of the nodes, and which of them to go on from.
// Pure.
#ifndef CAIRN_RUNTIME_SESSION_LOCAL_SNAPSHOT_H_
#define CAIRN_RUNTIME_SESSION_LOCAL_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/writers.h"
#include "runtime/session/protocol.h"

namespace cairn {

// A copy of the images that one rank of an earlier life staged.
struct LocalHolder {
  std::string node;
  RescueSource source;
  std::vector<uint32_t> files;  // their numbers
};

struct LocalSnapshot {
  uint32_t epoch = 0;
  int64_t step = 0;   // the count of cairn_step calls that it holds
  int64_t label = 0;  // the program's own number
  uint32_t world_size = 0;
  Hash128 layout;

  std::vector<std::vector<LocalHolder>>
      holders;  // by rank of that life: its own images before its partner's copy

  // Where its layout can be read.
  std::string layout_node, layout_folder;
};

// The newest by (epoch, step) of the run `run_id` that is complete: for every rank of the life that took it there is a slot of the same save
// and layout, the labels of all that had come to the boundary are equal, and one node has the layout. Snapshots that `wanted` declines are
// passed over.
std::optional<LocalSnapshot> NewestLocal(const std::vector<Inventory>& inventories, const std::string& run_id,
                                         const std::function<bool(const LocalSnapshot&)>& wanted);

// kDamage unless the ranks of each writer have filled the images of its first rank's slot of the same number (staging/memory_slot.h).
Status CheckSlots(const LocalSnapshot& local, const Writers& writers);

// What the nodes hold of the save of epoch `epoch` at `step`, complete or not: one copy of each rank's images, where there is one.
std::vector<LocalHolder> HeldOf(const std::vector<Inventory>& inventories, const std::string& run_id,
                                uint32_t epoch, int64_t step);

// Who rescues what: the slots of each node dealt out to the ranks that are there now. By rank of this life, whose inventories these are.
std::vector<std::vector<RescueSource>> DealOut(const std::vector<LocalHolder>& holders,
                                               const std::vector<Inventory>& inventories);

// What lies on one node.
std::vector<RescueSource> SourcesOn(const std::vector<LocalHolder>& holders, const std::string& node);

// The nodes that have something, with all their ranks.
std::vector<NearNode> NearNodes(const std::vector<LocalHolder>& holders,
                                const std::vector<Inventory>& inventories);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LOCAL_SNAPSHOT_H_
