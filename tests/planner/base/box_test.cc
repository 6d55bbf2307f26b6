#include "planner/base/box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Box, IntersectsInEveryDimension) {
  const Box a{{0, 0}, {4, 6}};
  const Box b{{2, 5}, {4, 6}};
  EXPECT_EQ(Intersect(a, b), (Box{{2, 5}, {2, 1}}));
}

TEST(Box, NeighboursThatOnlyTouchDoNotIntersect) {
  EXPECT_EQ(Intersect(Box{{0, 0}, {4, 6}}, Box{{4, 0}, {4, 6}}), std::nullopt);
}

TEST(Box, ScalarIntersectsItselfInOneElement) {
  const std::optional<Box> common = Intersect(Box{}, Box{});
  ASSERT_TRUE(common.has_value());
  EXPECT_EQ(common->elements(), 1);
}

TEST(Box, ContainsItselfAndNotWhatSticksOut) {
  const Box a{{2, 2}, {4, 4}};
  EXPECT_TRUE(a.Contains(a));
  EXPECT_TRUE(a.Contains(Box{{3, 3}, {2, 3}}));
  EXPECT_FALSE(a.Contains(Box{{3, 3}, {2, 4}}));
  EXPECT_FALSE(a.Contains(Box{{1, 3}, {1, 1}}));
}

TEST(Box, SubtractLeavesDisjointBoxesAroundTheCut) {
  std::vector<Box> rest;
  Subtract(Box{{0, 0}, {4, 6}}, Box{{1, 2}, {2, 3}}, &rest);
  EXPECT_THAT(rest, ::testing::UnorderedElementsAre(Box{{0, 0}, {1, 6}}, Box{{3, 0}, {1, 6}},
                                                    Box{{1, 0}, {2, 2}}, Box{{1, 5}, {2, 1}}));
}

TEST(Box, SubtractOfTheWholeLeavesNothing) {
  std::vector<Box> rest;
  Subtract(Box{}, Box{}, &rest);
  Subtract(Box{{1}, {2}}, Box{{1}, {2}}, &rest);
  EXPECT_THAT(rest, ::testing::IsEmpty());
}

TEST(Box, PrintsHalfOpenRanges) { EXPECT_EQ((Box{{0, 8}, {4, 8}}).ToString(), "[0:4, 8:16]"); }

}  // namespace
}  // namespace cairn
