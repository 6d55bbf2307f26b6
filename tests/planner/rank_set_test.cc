#include "planner/rank_set.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

void ExpectMembers(const RankSet& set, const Ranks& members) {
  ASSERT_EQ(set.size(), members.size());
  uint32_t below = 0;
  for (uint32_t rank = 0; rank < 20; ++rank) {
    EXPECT_EQ(set.CountBelow(rank), below) << rank;
    const bool is_member = below < members.size() && members[below] == rank;
    EXPECT_EQ(set.Has(rank), is_member) << rank;
    if (!is_member) continue;
    EXPECT_EQ(set.At(below++), rank);
  }
}

TEST(RankSet, IsAListWithoutSomeRanksAndWithOthers) {
  const Ranks base = {2, 3, 5, 8, 13};
  ExpectMembers(RankSet(base, {}), {2, 3, 5, 8, 13});
  ExpectMembers(RankSet(base, {2, 8}), {3, 5, 13});
  ExpectMembers(RankSet(base, {5, 13}, {0, 9}), {0, 2, 3, 8, 9});
  ExpectMembers(RankSet(base, {2, 3, 5, 8, 13}, {19}), {19});
}

TEST(RankSet, IsAListOfItsOwn) {
  ExpectMembers(RankSet(Ranks{0, 4, 19}), {0, 4, 19});
  ExpectMembers(RankSet(Ranks()), {});
}

}  // namespace
}  // namespace cairn
