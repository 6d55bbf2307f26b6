// ReadPlan: what a member loads when the program has a load planner of its own (cairn_load_planner): which box of which saved array goes where.
// Without one nothing of this is made. Pure.
//
//   1. Each member begins with the default plan, which the program changes; one member may change all of them (session/load_planner.h).
//   2. The leader joins them (JoinPlans): what is impossible is refused, before anything is read; what reaches over several pieces is cut at
//      their borders. What comes from one place to one place by several items is read once; from two places nothing goes to one. What all
//      members want is a layout, in the saved arrays' own coordinates, and so is loaded like any other.
//
// Boxes of an array have its dimensions as it is stored: a Fortran array's reversed.
#ifndef CAIRN_RUNTIME_SESSION_READ_PLAN_H_
#define CAIRN_RUNTIME_SESSION_READ_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/layout.h"
#include "runtime/session/matching.h"
#include "runtime/session/state.h"

namespace cairn {

struct ReadItem {
  uint32_t from = 0;  // position in the checkpoint's arrays
  Box box;            // of it
  uint32_t to = 0;    // position in State::layout.arrays
  Dims to_offset;     // where the box begins there
  bool resolve = false;
  uint32_t piece =
      0;  // of a joined plan, where not to be resolved: Piece::ordinal of the piece that the box goes into
};
using ReadPlan = std::vector<ReadItem>;

// Every piece of `rank` in full, of the arrays that `differences` does not say otherwise of and that are alike in the checkpoint; tables left out.
ReadPlan DefaultPlan(const std::vector<ArraySpec>& saved, const State& state,
                     const std::vector<ItemDifference>& differences, uint32_t rank);

// Where the box of `item` goes, in coordinates of the registered array.
Box TargetOf(const ReadItem& item, const ArraySpec& saved, const ArraySpec& registered);

struct JoinedPlans {
  std::vector<ReadPlan> plans;  // by rank; items by `from`, boxes not empty
  // Of the saved arrays of which anybody wants something. The ordinal-th piece of an array and rank is the ordinal-th item from it.
  Layout wanted;
  Fills fills;
};

// `plans`: by rank. kInvalid with the rank, the item and what is wrong with it.
Result<JoinedPlans> JoinPlans(const std::vector<ReadPlan>& plans, const std::vector<ArraySpec>& saved,
                              const State& state);

inline constexpr size_t kMaxPlansBytes = size_t{48} << 20;   // a message holds 64 MiB
inline constexpr size_t kMaxPlanItems = kMaxPlansBytes / 8;  // none takes fewer bytes

// As they travel, several of them in one message. kInvalid when they are too long for it.
Result<std::vector<std::string>> EncodePlans(const std::vector<ReadPlan>& plans);
Status CheckPlansFit(size_t bytes);  // of all that travels together
Result<ReadPlan> DecodePlan(std::string_view bytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_READ_PLAN_H_
