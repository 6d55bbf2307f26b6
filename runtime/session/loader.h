// LoadShare: one member's own side of a restore: plans its part of what all members load together, reads, verifies, hands on and takes, and fills
// the registered memory.
#ifndef CAIRN_RUNTIME_SESSION_LOADER_H_
#define CAIRN_RUNTIME_SESSION_LOADER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "planner/layout.h"
#include "runtime/formats/index.h"
#include "runtime/restore/carried_exchange.h"
#include "runtime/restore/exchange.h"
#include "runtime/session/items.h"
#include "runtime/session/load_planner.h"
#include "runtime/session/protocol.h"

namespace cairn {

// Copies of a checkpoint's files in the memory of the nodes. A file that a node has is read there, and handed on to the ranks of the others.
struct NearCopies {
  std::map<uint32_t, std::string> here;  // paths of those on this rank's node, by number
  std::vector<NearNode> nodes;           // who has which
};

// What the program's load planner says that goes into arrays.
struct PlannedLoad {
  LoadPlanner* planner = nullptr;  // never nullptr
  Layout wanted;                   // JoinedPlans::wanted
};

// The index of what `order` names. `foreign`: the last order of kind kForeign, or an empty one. kDamage: twice it was not what order.index_hash
// says. Blocking.
Result<Index> ReadIndex(const Order& order, const Order& foreign);

// `order`, `foreign`: which checkpoint, and whether the members share the reading; `merged`: its blobs of that policy. `state`: what all members registered; `items`: what this one did, of which
// tables get the rows that they are due, and more room if they need it. `planned`: where the order has a plan of the program's load planner, whose
// Commit is left to the caller; else nothing.
// `carried`: what is handed on goes over its carrier; nullptr: over sockets, by `links`.
// Blocks of `near` copies are read in the place of the checkpoint's own where they hold what its checksums say. Of the arrays, those are loaded
// that `order.differences` does not say otherwise of; that the index lacks one, or has it with another type or shape, is kMismatch. Errors else
// as ExecuteExchange. After an error the memory may be partly written. Blocking; the application's thread.
Result<LoadStats> LoadShare(const Order& order, const Order& foreign, const NearCopies& near,
                            const MergedBlobs& merged, const State& state, Items& items,
                            std::optional<PlannedLoad> planned, const ExchangeLinks& links,
                            const CarriedRound* carried);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LOADER_H_
