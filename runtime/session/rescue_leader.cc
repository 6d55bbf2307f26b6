#include "runtime/session/rescue_leader.h"

#include <chrono>
#include <utility>

#include "planner/save_plan.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

// It moves at the speed of the file system; a member that hangs is found by its heartbeat, not by this.
constexpr std::chrono::hours kRescueBound{24};

}  // namespace

Result<Rescued> LeadRescue(const LocalSnapshot& local, const std::string& parent,
                           const std::vector<Inventory>& inventories, Members& members, Keeper& keeper) {
  const auto begin = std::chrono::steady_clock::now();
  keeper.log().Info("step ", local.step, " was staged by all ", local.world_size,
                    " ranks and is not durable: writing it from the memory of the nodes");
  // The layout, from the first rank of the node that has it.
  int reader = 0;
  while (inventories[static_cast<size_t>(reader)].node != local.layout_node) ++reader;
  members.Tell(reader, Order{.kind = Order::kShowLayout, .path = local.layout_folder});
  CAIRN_ASSIGN_OR_RETURN(const Outcome shown, members.Hear(reader));
  CAIRN_RETURN_IF_ERROR(shown.status);
  CAIRN_ASSIGN_OR_RETURN(const State state, DecodeState(shown.layout));
  if (LayoutHash(state.layout) != local.layout || state.layout.world_size != local.world_size)
    return Status(Code::kDamage, local.layout_folder + " holds the layout of another save");
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(state.layout));
  CAIRN_ASSIGN_OR_RETURN(Index index, DescribeSave(state.layout, plan));

  CAIRN_ASSIGN_OR_RETURN(const std::string attempt, keeper.Prepare(local.step));
  const auto publish = [&]() -> Result<Published> {
    const std::vector<std::vector<RescueSource>> dealt = DealOut(local, inventories);
    const auto order_for = [&](int rank) {
      return Order{.kind = Order::kRescue,
                   .state = shown.layout,
                   .path = attempt,
                   .sources = dealt[static_cast<size_t>(rank)]};
    };
    CAIRN_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes, members.Ask(order_for, kRescueBound));
    std::vector<MemberRecord> records(local.world_size);
    for (const Outcome& outcome : outcomes) {
      for (const auto& [rank, bytes] : outcome.records) {
        if (rank >= records.size()) return Status(Code::kInternal, "records of rank " + std::to_string(rank));
        CAIRN_ASSIGN_OR_RETURN(records[rank], DecodeSessionMessage<MemberRecord>(bytes));
      }
    }
    Manifest manifest;
    manifest.label = local.label;
    manifest.trigger = "rescue";
    manifest.parent = parent;
    return keeper.Publish(std::move(index), records, state, std::move(manifest));
  };
  const Result<Published> published = publish();
  if (!published.ok()) {
    keeper.Abandon();
    return published.status();
  }
  const uint64_t bytes = published->manifest.total_bytes;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  keeper.log().Info("rescued step ", local.step, ": ", FormatBytes(bytes), " in ",
                    FormatDuration(std::chrono::duration_cast<Nanoseconds>(seconds)), ", ", published->name);
  keeper.Journal("rescued", {{"checkpoint", Keeper::Quote(published->name)},
                             {"step", std::to_string(local.step)},
                             {"label", std::to_string(local.label)},
                             {"bytes", std::to_string(bytes)}});
  return Rescued{published->name, parent, local};
}

}  // namespace cairn
