#include "planner/flat_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/oracle.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FlatRange, IsCutIntoRowsWithAHeadAndATail) {
  EXPECT_THAT(CutFlatRange({4, 6}, 4, 15),
              ElementsAre(Box{{0, 4}, {1, 2}}, Box{{1, 0}, {2, 6}}, Box{{3, 0}, {1, 1}}));
  EXPECT_THAT(CutFlatRange({4, 6}, 7, 3), ElementsAre(Box{{1, 1}, {1, 3}}));
  EXPECT_THAT(CutFlatRange({4, 6}, 6, 12), ElementsAre(Box{{1, 0}, {2, 6}}));
  EXPECT_THAT(CutFlatRange({4, 6}, 5, 0), IsEmpty());
  EXPECT_THAT(CutFlatRange({9}, 2, 3), ElementsAre(Box{{2}, {3}}));
  EXPECT_THAT(CutFlatRange({}, 0, 1), ElementsAre(Box{}));
}

TEST(FlatRange, BoxesAreTheRangeInItsOrder) {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    Dims shape;
    for (int64_t d = Uniform(random, 0, 4); d > 0; --d) shape.push_back(Uniform(random, 1, 5));
    const int64_t begin = Uniform(random, 0, shape.Product());
    const int64_t count = Uniform(random, 0, shape.Product() - begin);
    const std::vector<Box> boxes = CutFlatRange(shape, begin, count);
    EXPECT_LE(boxes.size(), static_cast<size_t>(std::max(1, 2 * shape.size() - 1)));
    int64_t next = begin;
    for (const Box& box : boxes) {
      ForEachElement(box, [&](const Dims& at) { EXPECT_EQ(FlatIndex(shape, at), next++); });
    }
    EXPECT_EQ(next, begin + count);
  }
}

}  // namespace
}  // namespace cairn
