// Hops: the way of a parcel from its reader to all who take it (exchange_plan.h, rule 5).
#ifndef CAIRN_PLANNER_HOPS_H_
#define CAIRN_PLANNER_HOPS_H_

#include <cstdint>
#include <vector>

#include "planner/rank_set.h"

namespace cairn {

struct Hops {
  uint32_t from;             // who sends it: the reader, or who passes it on
  std::vector<uint32_t> to;  // to whom it goes next
};

// Of `self`, a member or the reader.
Hops HopsOf(const RankSet& members, uint32_t reader, uint32_t self);

}  // namespace cairn

#endif  // CAIRN_PLANNER_HOPS_H_
