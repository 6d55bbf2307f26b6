#include "runtime/session/save_preparation.h"

#include <string>
#include <utility>

#include "planner/save_plan.h"
#include "planner/writers.h"
#include "runtime/session/partner.h"
#include "runtime/staging/image_plan.h"

namespace cairn {
namespace {

std::vector<std::string> NodesOf(const std::vector<Inventory>& inventories) {
  std::vector<std::string> nodes;
  for (const Inventory& inventory : inventories) nodes.push_back(inventory.node);
  return nodes;
}

// For people: how many files of arrays each save has.
std::string DescribeFiles(size_t files, size_t writers) {
  std::string text =
      "each save has " + std::to_string(files) + (files == 1 ? " file" : " files") + " of arrays";
  if (files > writers) {
    text += ", not " + std::to_string(writers) +
            ": a file takes one box of an array, and some arrays are cut so that the ranks of a node hold "
            "boxes that do not make up one";
  }
  return text;
}

// Step 2. Why not, where that cannot be; "" when it is done.
Result<std::string> PrepareTogether(const std::vector<uint32_t>& writer_of, const std::string& run_id,
                                    Members& members, const Keeper& keeper) {
  std::vector<int> first_of, others;  // by writer; all other ranks
  for (int rank = 0; rank < static_cast<int>(writer_of.size()); ++rank) {
    const bool is_first = writer_of[static_cast<size_t>(rank)] == first_of.size();
    (is_first ? first_of : others).push_back(rank);
  }
  std::string why_not;
  std::vector<std::string> folders;  // by writer
  const auto hear = [&](int rank) -> Result<Outcome> {
    CAIRN_ASSIGN_OR_RETURN(Outcome outcome, members.Hear(rank));
    if (why_not.empty() && !outcome.status.ok())
      why_not = "rank " + std::to_string(rank) + ": " + outcome.status.message();
    return outcome;
  };
  for (const int rank : first_of) members.Tell(rank, Order{.kind = Order::kPrepare, .run_id = run_id});
  for (const int rank : first_of) {
    CAIRN_ASSIGN_OR_RETURN(const Outcome outcome, hear(rank));
    folders.push_back(outcome.folder);
    if (!outcome.warning.empty()) keeper.log().Warn("rank ", rank, ": ", outcome.warning);
  }
  if (!why_not.empty()) return why_not;
  for (const int rank : others) {
    const std::string& folder = folders[writer_of[static_cast<size_t>(rank)]];
    members.Tell(rank, Order{.kind = Order::kPrepare, .run_id = run_id, .shared_folder = folder});
  }
  for (const int rank : others) CAIRN_RETURN_IF_ERROR(hear(rank).status());
  if (why_not.empty()) keeper.log().Info(DescribeFiles(keeper.files(), folders.size()));
  return why_not;
}

}  // namespace

std::vector<uint32_t> ChooseWriters(const Settings& settings, const std::vector<Inventory>& inventories) {
  if (settings.files == 0 || settings.partner) return {};
  return ShareOutFiles(NodesOf(inventories), settings.files);
}

Result<Index> IndexOfSaves(const State& state) {
  CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(state.layout, state.writer_of));
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(writers.layout()));
  return DescribeSave(writers.layout(), plan);
}

Result<Index> TellLayout(const State& state, Members& members) {
  CAIRN_ASSIGN_OR_RETURN(Index index, IndexOfSaves(state));
  members.TellAll(Order{.kind = Order::kLayout, .state = EncodeState(state)});
  return index;
}

Status PrepareSaves(const Bootstrap& boot, const std::vector<Inventory>& inventories, State state,
                    Members& members, Keeper& keeper) {
  const std::string run_id = keeper.epoch() ? keeper.directory()->info().id : "";
  Log& log = keeper.log();
  if (!state.writer_of.empty()) {
    CAIRN_ASSIGN_OR_RETURN(const std::string why_not,
                           PrepareTogether(state.writer_of, run_id, members, keeper));
    if (why_not.empty()) return OkStatus();
    log.Warn(
        "CAIRN_FILES: each rank writes files of its own, since ranks of a node cannot fill them together: ",
        why_not);
    state.writer_of.clear();
    CAIRN_ASSIGN_OR_RETURN(Index index, TellLayout(state, members));
    keeper.SaveAs(std::move(state), std::move(index));
  } else if (boot.settings.files > 0 && boot.settings.partner) {
    log.Info("CAIRN_FILES: each rank writes files of its own, since CAIRN_PARTNER copies them rank by rank");
  }
  std::vector<int> partners(inventories.size(), -1);
  if (boot.settings.partner) {
    partners = PartnersOf(NodesOf(inventories));
    if (partners.front() < 0) log.Info("CAIRN_PARTNER: no copies are kept, since all ranks are on one node");
  }
  for (int rank = 0; rank < boot.world_size; ++rank) {
    Order order{.kind = Order::kPrepare, .run_id = run_id, .partner = partners[static_cast<size_t>(rank)]};
    for (uint32_t ward = 0; ward < partners.size(); ++ward) {
      if (partners[ward] == rank) order.wards.push_back(ward);
    }
    members.Tell(rank, order);
  }
  std::string warning;  // of the first rank that has one, for all of them
  int warned = 0;
  for (int rank = 0; rank < boot.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Outcome outcome, members.Hear(rank));
    if (!outcome.warning.empty() && warned++ == 0)
      warning = "rank " + std::to_string(rank) + ": " + outcome.warning;
    if (outcome.status.ok()) continue;
    const std::string why = "rank " + std::to_string(rank) + " cannot be saved: " + outcome.status.message();
    if (boot.settings.require) return {outcome.status.code(), why};
    log.Warn(why);
  }
  if (warned > 1)
    warning +=
        "; the same holds for " + std::to_string(warned - 1) + (warned == 2 ? " more rank" : " more ranks");
  if (warned > 0) log.Warn(warning);
  return OkStatus();
}

}  // namespace cairn
