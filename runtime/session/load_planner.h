// LoadPlanner: the program's load planner (cairn_load_planner) at work on one checkpoint. Calls it with dimensions and addresses as the program knows
// them; read_plan.h has what becomes of the plans. The application's thread.
//
// Errors: what the program's calls fail with is kMismatch (or kOutOfMemory), and says which call and why.
#ifndef CAIRN_RUNTIME_SESSION_LOAD_PLANNER_H_
#define CAIRN_RUNTIME_SESSION_LOAD_PLANNER_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/saved_layout.h"
#include "runtime/formats/index.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/restore/reader.h"
#include "runtime/session/items.h"
#include "runtime/session/protocol.h"
#include "runtime/session/read_plan.h"
#include "runtime/session/state.h"

namespace cairn {

class LoadPlanner {
 public:
  // `state` and `items` outlive it, as does what calls.user points to.
  LoadPlanner(const cairn_load_planner& calls, const State& state, const Items& items, int rank)
      : calls_(calls), state_(state), items_(items), rank_(rank) {}
  LoadPlanner(const LoadPlanner&) = delete;
  LoadPlanner& operator=(const LoadPlanner&) = delete;

  // set_up and local_plan. `order`: kPlan; `index`: of its checkpoint.
  Result<ReadPlan> PlanLocally(const Order& order, Index index);
  // global_plan. By rank.
  Result<std::vector<ReadPlan>> PlanForAll(std::vector<ReadPlan> plans);
  // finish_plan and resolve: where each item of this member's joined plan goes.
  Result<std::vector<Destination>> Resolve(const ReadPlan& plan);
  // commit, of the items resolved last; once all members have loaded.
  Status Commit();

 private:
  // What `plan` names, as the program sees it.
  struct Shown {
    std::vector<cairn_read_item> items;
    cairn_load_plan plan() const { return {static_cast<int>(items.size()), items.data()}; }
  };

  void Describe(const Order& order);
  static int Boxes(const cairn_load_setup* setup, int saved, int capacity, cairn_box* boxes);
  const ArraySpec* Saved(uint32_t from) const;
  const ArraySpec* Registered(uint32_t to) const;
  cairn_read_item Show(const ReadItem& item) const;
  Shown Show(const ReadPlan& plan) const;
  ReadItem Take(const cairn_read_item& item) const;
  Result<ReadPlan> Take(const cairn_load_plan& plan) const;
  Destination PlaceOf(const ReadItem& item) const;
  Result<Destination> Ask(const ReadItem& item);
  Status Said(int code, const std::string& call) const;

  const cairn_load_planner calls_;
  const State& state_;
  const Items& items_;
  const int rank_;
  Index index_;
  std::optional<SavedIndex> saved_;  // of index_
  std::vector<cairn_saved_array> saved_arrays_;
  std::vector<cairn_registered_array> registered_;
  std::vector<std::vector<cairn_piece>> pieces_;                      // by registered array
  std::unordered_map<std::string_view, const RegisteredArray*> own_;  // this member's, by name
  cairn_load_setup setup_{};
  struct Resolved {
    cairn_read_item item;
    cairn_load_memory memory;
  };
  std::vector<Resolved> resolved_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LOAD_PLANNER_H_
