#include "runtime/session/local_snapshot.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/session/partner.h"

namespace cairn {
namespace {

// Slots of a save, by rank of the life that staged it; a rank's own before a copy, on a partner.
struct Slot {
  const Inventory* at;
  const LeftSlot* slot;
  LocalHolder Holder() const { return {at->node, {slot->folder, slot->slot, slot->id.rank}, slot->images}; }
};
using Slots = std::map<uint32_t, std::vector<Slot>>;

void Add(const Inventory& inventory, const LeftSlot& slot, Slots* slots) {
  std::vector<Slot>& of_rank = (*slots)[slot.id.rank];
  of_rank.insert(slot.slot.starts_with(kPartnerSlot) ? of_rank.end() : of_rank.begin(), {&inventory, &slot});
}

// One save of one life, and the slots of it that were found.
struct Found {
  Slots by_rank;
  const Inventory* layout_at = nullptr;
  const LeftSlot* layout_of = nullptr;
};

std::optional<LocalSnapshot> Complete(const Found& found) {
  const SnapshotId& id = found.by_rank.begin()->second.front().slot->id;
  if (found.by_rank.size() != id.world_size || found.by_rank.rbegin()->first != id.world_size - 1 ||
      found.layout_at == nullptr)
    return std::nullopt;
  LocalSnapshot snapshot;
  snapshot.epoch = static_cast<uint32_t>(id.epoch);
  snapshot.world_size = id.world_size;
  snapshot.layout = id.layout;
  snapshot.layout_node = found.layout_at->node;
  snapshot.layout_folder = found.layout_of->folder;
  // Step and label are what the agreement made of them (agreement/leader.h, 7): a rank in cairn_finalize may be behind the boundary.
  const SnapshotStamp* witness = nullptr;
  for (const auto& [rank, slots] : found.by_rank) {
    std::vector<LocalHolder>& holders = snapshot.holders.emplace_back();
    for (const Slot& slot : slots) holders.push_back(slot.Holder());
    const SnapshotStamp& stamp = slots.front().slot->stamp;
    if (witness == nullptr || (witness->final && (!stamp.final || stamp.count > witness->count)))
      witness = &stamp;
    if (!stamp.final && stamp.label != witness->label) return std::nullopt;
  }
  snapshot.label = witness->label;
  snapshot.step = witness->final ? witness->count : static_cast<int64_t>(id.boundary);
  return snapshot;
}

}  // namespace

std::optional<LocalSnapshot> NewestLocal(const std::vector<Inventory>& inventories, const std::string& run_id,
                                         const std::function<bool(const LocalSnapshot&)>& wanted) {
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, std::string, uint32_t>;
  std::map<Key, Found> saves;
  for (const Inventory& inventory : inventories) {
    for (const LeftSlot& slot : inventory.slots) {
      const SnapshotId& id = slot.id;
      if (slot.run_id != run_id || id.epoch == 0 || id.epoch > UINT32_MAX || id.rank >= id.world_size)
        continue;
      Found& found = saves[{id.epoch, id.save_id, id.boundary, id.layout.ToHex(), id.world_size}];
      Add(inventory, slot, &found.by_rank);
      if (slot.has_layout && found.layout_at == nullptr) {
        found.layout_at = &inventory;
        found.layout_of = &slot;
      }
    }
  }
  std::optional<LocalSnapshot> newest;
  for (const auto& [key, found] : saves) {
    std::optional<LocalSnapshot> snapshot = Complete(found);
    if (!snapshot || !wanted(*snapshot)) continue;
    if (!newest || std::tie(newest->epoch, newest->step) < std::tie(snapshot->epoch, snapshot->step))
      newest = std::move(snapshot);
  }
  return newest;
}

Status CheckSlots(const LocalSnapshot& local, const Writers& writers) {
  std::vector<const std::string*> slot_of;  // by writer, as its first rank says
  for (uint32_t rank = 0; rank < local.world_size; ++rank) {
    const std::string& slot = local.holders[rank].front().source.slot;
    const uint32_t writer = writers.Of(rank);
    if (writer == slot_of.size()) slot_of.push_back(&slot);
    if (*slot_of[writer] != slot)
      return {Code::kDamage, "rank " + std::to_string(rank) + " has filled " + slot +
                                 ", the first of the ranks that it writes files with " + *slot_of[writer]};
  }
  return OkStatus();
}

std::vector<LocalHolder> HeldOf(const std::vector<Inventory>& inventories, const std::string& run_id,
                                uint32_t epoch, int64_t step) {
  Slots slots;
  for (const Inventory& inventory : inventories) {
    for (const LeftSlot& slot : inventory.slots) {
      const bool same_step = slot.id.boundary == static_cast<uint64_t>(step) || slot.stamp.count == step;
      if (slot.run_id == run_id && slot.id.epoch == epoch && same_step) Add(inventory, slot, &slots);
    }
  }
  std::vector<LocalHolder> holders;
  for (const auto& [rank, found] : slots) holders.push_back(found.front().Holder());
  return holders;
}

std::vector<std::vector<RescueSource>> DealOut(const std::vector<LocalHolder>& holders,
                                               const std::vector<Inventory>& inventories) {
  std::map<std::string, std::vector<size_t>> ranks_on;
  for (size_t rank = 0; rank < inventories.size(); ++rank) ranks_on[inventories[rank].node].push_back(rank);
  std::map<std::string, size_t> dealt;
  std::vector<std::vector<RescueSource>> out(inventories.size());
  for (const LocalHolder& holder : holders) {
    const std::vector<size_t>& ranks = ranks_on.at(holder.node);
    out[ranks[dealt[holder.node]++ % ranks.size()]].push_back(holder.source);
  }
  return out;
}

std::vector<RescueSource> SourcesOn(const std::vector<LocalHolder>& holders, const std::string& node) {
  std::vector<RescueSource> sources;
  for (const LocalHolder& holder : holders) {
    if (holder.node == node) sources.push_back(holder.source);
  }
  return sources;
}

std::vector<NearNode> NearNodes(const std::vector<LocalHolder>& holders,
                                const std::vector<Inventory>& inventories) {
  std::map<std::string, NearNode> nodes;
  for (const LocalHolder& holder : holders) {
    NearNode& node = nodes[holder.node];
    node.files.insert(node.files.end(), holder.files.begin(), holder.files.end());
  }
  for (uint32_t rank = 0; rank < inventories.size(); ++rank) {
    if (const auto node = nodes.find(inventories[rank].node); node != nodes.end())
      node->second.ranks.push_back(rank);
  }
  std::vector<NearNode> out;
  for (auto& [name, node] : nodes) {
    std::sort(node.files.begin(), node.files.end());
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace cairn
