#include "runtime/session/rescue_leader.h"

#include <chrono>
#include <optional>
#include <utility>

#include "planner/save_plan.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

// It moves at the speed of the file system; a member that hangs is found by its heartbeat, not by this.
constexpr std::chrono::hours kRescueBound{24};

// Has the images written into the attempt, each rank's first copy first. A copy that turns out to be damaged is dropped from `local`, and the
// next one taken. Returns the records by rank of that life.
Result<std::vector<MemberRecord>> Write(const std::string& layout, const std::string& attempt,
                                        const std::vector<Inventory>& inventories, Members& members,
                                        Keeper& keeper, LocalSnapshot* local) {
  std::vector<std::optional<MemberRecord>> written(local->world_size);
  for (;;) {
    std::vector<LocalHolder> next;
    for (size_t rank = 0; rank < written.size(); ++rank) {
      if (!written[rank]) next.push_back(local->holders[rank].front());
    }
    if (next.empty()) break;
    const std::vector<std::vector<RescueSource>> dealt = DealOut(next, inventories);
    const auto order_for = [&](int rank) {
      return Order{.kind = Order::kRescue,
                   .state = layout,
                   .path = attempt,
                   .sources = dealt[static_cast<size_t>(rank)]};
    };
    CAIRN_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes, members.Ask(order_for, kRescueBound));
    for (const Outcome& outcome : outcomes) {
      for (const auto& [rank, bytes] : outcome.records) {
        if (rank >= written.size()) return Status(Code::kInternal, "records of rank " + std::to_string(rank));
        CAIRN_ASSIGN_OR_RETURN(written[rank], DecodeSessionMessage<MemberRecord>(bytes));
      }
      for (const auto& [rank, why] : outcome.damaged) {
        if (rank >= written.size()) return Status(Code::kInternal, "damage of rank " + std::to_string(rank));
        std::vector<LocalHolder>& holders = local->holders[rank];
        holders.erase(holders.begin());
        if (holders.empty()) return Status(Code::kDamage, why);
        keeper.log().Warn(why, "; the copy on ", holders.front().node, " is taken instead");
      }
    }
  }
  std::vector<MemberRecord> records;
  for (std::optional<MemberRecord>& record : written) records.push_back(*std::move(record));
  return records;
}

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
  if (LayoutHash(state.layout, state.writer_of) != local.layout ||
      state.layout.world_size != local.world_size)
    return Status(Code::kDamage, local.layout_folder + " holds the layout of another save");
  CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(state.layout, state.writer_of));
  CAIRN_RETURN_IF_ERROR(CheckSlots(local, writers));
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(writers.layout()));
  CAIRN_ASSIGN_OR_RETURN(Index index, DescribeSave(writers.layout(), plan));

  CAIRN_ASSIGN_OR_RETURN(const std::string attempt, keeper.Prepare(local.step));
  Rescued rescued{"", parent, local};
  const auto publish = [&]() -> Result<Published> {
    CAIRN_ASSIGN_OR_RETURN(const std::vector<MemberRecord> records,
                           Write(shown.layout, attempt, inventories, members, keeper, &rescued.local));
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
  keeper.Journal(
      "rescued",
      {{"checkpoint", Keeper::Quote(published->name)},
       {"step", std::to_string(local.step)},
       {"label", std::to_string(local.label)},
       {"bytes", std::to_string(bytes)},
       {"rescue_ns", std::to_string(Nanoseconds(std::chrono::steady_clock::now() - begin).count())}});
  rescued.name = published->name;
  return rescued;
}

}  // namespace cairn
