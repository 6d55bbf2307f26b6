#include "runtime/session/exchange_way.h"

#include <algorithm>

namespace cairn {

ExchangeWay ChooseWay(ExchangeBy setting, const std::vector<Inventory>& inventories) {
  if (setting == ExchangeBy::kTcp || inventories.size() < 2) return {};
  const bool on_one_node =
      std::all_of(inventories.begin(), inventories.end(),
                  [&](const Inventory& inventory) { return inventory.node == inventories.front().node; });
  if (setting == ExchangeBy::kAuto && on_one_node)
    return {};  // through its memory, which MPI is no faster than
  const auto lacks = std::find_if(inventories.begin(), inventories.end(),
                                  [](const Inventory& inventory) { return !inventory.mpi.ok(); });
  if (lacks == inventories.end()) return {.way = Order::kMpi};
  ExchangeWay out{.asked_for_it = setting == ExchangeBy::kMpi};
  const bool some_have_it =
      std::any_of(inventories.begin(), inventories.end(),
                  [](const Inventory& inventory) { return inventory.mpi.code() != Code::kNotFound; });
  if (some_have_it || out.asked_for_it)
    out.why_not_mpi = "rank " + std::to_string(lacks - inventories.begin()) + ": " + lacks->mpi.message();
  return out;
}

}  // namespace cairn
