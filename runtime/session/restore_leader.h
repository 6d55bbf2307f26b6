// RestoreLeader: leads the restore of a life: which checkpoint all load, and what stops them. The rules are in docs/design/restore.md.
//
//   1. All members say what they found on their nodes, then share their items. Merged, they are the layout of this life; all get it.
//   2. The candidates are offered from the newest on: a snapshot that was staged by all and never became durable is made so first
//      (session/rescue_leader.h); where the program has a load planner, all make their plans, and member 0 changes them (session/read_plan.h);
//      all are told of which of its files the nodes' memory has copies, and load it in one round (session/members.h). Load planners commit in one more, when all have loaded.
//      What is damaged is marked, and the next one is offered; whatever else goes wrong stops all.
//      Where there are tables, whose rows are dealt out with the load, all share their items again.
//   3. The keeper goes on from it: this epoch's parent is published.
//   4. The nodes forget what earlier lives left in their memory.
//   5. All members prepare their saves (session/save_preparation.h).
//
// Blocking, on the directory and on the members; the clerk's thread.
#ifndef CAIRN_RUNTIME_SESSION_RESTORE_LEADER_H_
#define CAIRN_RUNTIME_SESSION_RESTORE_LEADER_H_

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/log/log.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/keeper.h"
#include "runtime/session/matching.h"
#include "runtime/session/members.h"
#include "runtime/session/read_plan.h"
#include "runtime/session/rescue_leader.h"

namespace cairn {

class RestoreLeader {
 public:
  // All but `match`, which is as the program asks, outlive it.
  RestoreLeader(const Bootstrap& boot, MatchOptions match, Members& members, Keeper& keeper)
      : boot_(boot), match_(std::move(match)), members_(members), keeper_(keeper), log_(keeper.log()) {
    match_.allowed = boot.settings.match.value_or(match_.allowed);
  }

  // Once. The last order (kProceed or kStop), which the caller sends to all.
  Order Lead();

 private:
  Result<Order> Restore();
  Status MergeShares();
  Status LayOutTables();
  Result<Order> Choose(const RunDirectory& dir);
  Result<Order> BeginFrom(const Origin& origin);
  Result<Order> OfferForeign(const Origin& origin, const std::string& title, const MatchOptions& match);
  // What its name says, loaded by all; nothing when it is damaged, and then marked.
  Result<std::optional<Order>> Take(const RunDirectory& dir, const std::string& name);
  std::vector<LocalHolder> HeldOfCheckpoint(const LoadedCheckpoint& checkpoint) const;
  Result<Order> Offer(const LoadedCheckpoint& checkpoint, const std::string& title,
                      const MatchOptions& match);
  Order::Way Connect();  // once: how all hand on what they read
  // What all members have planned for it, `differences` being what differs if nobody changes anything.
  Result<JoinedPlans> Plan(const LoadedCheckpoint& checkpoint, std::vector<ItemDifference> differences);
  // Before what `load` says is loaded from the checkpoint of this title: whether all that it does not restore is still as the program made it.
  Status MayKeep(const Order& load, const std::string& title);
  void PassOver(const RunDirectory& dir, const std::string& name, const Status& why);
  Status Forget();

  const Bootstrap& boot_;
  MatchOptions match_;
  Members& members_;
  Keeper& keeper_;
  Log& log_;
  std::vector<Inventory> inventories_;  // by rank; what earlier lives left on the nodes
  State state_;                         // what all members registered
  Index index_;                         // of every save of it, but for the files' roots
  std::set<std::string> touched_;  // items that a checkpoint was loaded into, which may have been damaged
  std::optional<Rescued> rescued_;
  std::optional<Order::Way> way_;
  std::string loaded_;  // the checkpoint that all have loaded; "" = none
  // What that took; zeros for a fresh start.
  struct Cost {
    uint32_t saved_world_size = 0;
    uint64_t read_bytes = 0;    // of the files, in whole blocks
    uint64_t near_bytes = 0;    // of these, from copies in the memory of the nodes
    uint64_t needed_bytes = 0;  // of state, each byte once
    Nanoseconds time{};
  } cost_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_RESTORE_LEADER_H_
