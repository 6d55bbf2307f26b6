#include "planner/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/layout_builder.h"
#include "planner/layout_index.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

const ArraySpec kU{"u", DType::kF64, false, {4, 6}};

void ExpectRefused(const Layout& layout, const char* reason) {
  const Status status = ValidateLayout(layout);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr(reason));
}

TEST(Layout, AcceptsBlocksReplicasScalarsAndEmptyArrays) {
  const Layout layout =
      MakeLayout(2, {kU, {"lr", DType::kF32, false, {}}, {"nothing", DType::kF32, false, {0, 5}}},
                 {{0, 0, 0, {{0, 0}, {4, 4}}}, {0, 1, 0, {{0, 4}, {4, 2}}}, {1, 0, 0, {}}, {1, 1, 0, {}}});
  const Status status = ValidateLayout(layout);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Layout, NamesTheFirstElementsThatNobodyHolds) {
  ExpectRefused(MakeLayout(2, {kU}, {{0, 0, 0, {{0, 0}, {4, 3}}}, {0, 1, 0, {{1, 3}, {3, 3}}}}),
                "array 'u' of shape [4, 6]: no rank holds elements [0:1, 3:6]");
}

TEST(Layout, DoesNotTakeOverlapForCover) {
  ExpectRefused(
      MakeLayout(1, {{"v", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {2}}}, {0, 0, 0, {{1}, {2}}}}),
      "no rank holds elements [3:4]");
}

TEST(Layout, NeedsAPieceOfAScalar) {
  ExpectRefused(MakeLayout(1, {{"lr", DType::kF32, false, {}}}, {}), "'lr'");
}

TEST(Layout, RefusesABoxThatReachesOutside) {
  ExpectRefused(MakeLayout(1, {kU}, {{0, 0, 0, {{1, 0}, {4, 6}}}}), "reaches outside");
  ExpectRefused(MakeLayout(1, {kU}, {{0, 0, 0, {{-1, 0}, {5, 6}}}}), "reaches outside");
  ExpectRefused(MakeLayout(1, {kU}, {{0, 0, 0, {{0, INT64_MAX}, {4, 6}}}}), "reaches outside");
}

TEST(Layout, RefusesABoxOfOtherDimensions) {
  ExpectRefused(MakeLayout(1, {kU}, {{0, 0, 0, {{0}, {4}}}}), "a box has 1 dimensions");
}

TEST(Layout, RefusesTwoArraysOfOneName) {
  ExpectRefused(MakeLayout(1, {kU, kU}, {{0, 0, 0, Box::Whole({4, 6})}, {1, 0, 0, Box::Whole({4, 6})}}),
                "same name");
}

TEST(Layout, RefusesARankPastTheWorldSize) {
  ExpectRefused(MakeLayout(1, {kU}, {{0, 1, 0, Box::Whole({4, 6})}}), "rank 1, the world size is 1");
}

TEST(Layout, RefusesPiecesOutOfOrder) {
  Layout layout = MakeLayout(2, {kU}, {{0, 0, 0, Box::Whole({4, 6})}, {0, 1, 0, Box::Whole({4, 6})}});
  std::swap(layout.pieces[0], layout.pieces[1]);
  ExpectRefused(layout, "piece 0 of rank 0 is listed twice or out of order");
}

TEST(Layout, RefusesAPieceThatIsListedTwice) {
  Layout layout = MakeLayout(1, {kU}, {{0, 0, 0, Box::Whole({4, 6})}});
  layout.pieces.push_back(layout.pieces[0]);
  ExpectRefused(layout, "listed twice");
}

TEST(Layout, RefusesAPieceOfAnArrayThatIsNotThere) {
  ExpectRefused(MakeLayout(1, {kU}, {{0, 0, 0, Box::Whole({4, 6})}, {7, 0, 0, {}}}), "array number 7");
}

TEST(Layout, RefusesASizeThatOverflows) {
  EXPECT_TRUE(CheckArray({"a", DType::kF64, false, {int64_t{1} << 30, int64_t{1} << 29}}).ok());
  const Status status = CheckArray({"a", DType::kF64, false, {int64_t{1} << 30, int64_t{1} << 30}});
  EXPECT_THAT(status.message(), HasSubstr("does not fit 63 bits"));
  EXPECT_EQ(CheckArray({"a", DType::kF64, false, {-1}}).code(), Code::kInvalid);
  EXPECT_EQ(CheckArray({"", DType::kF64, false, {1}}).code(), Code::kInvalid);
}

TEST(Layout, SelectsSomeOfItsArrays) {
  const Layout layout = MakeLayout(
      2,
      {kU, {"lr", DType::kF32, false, {}}, {"odd", DType::kF32, false, {5}}, {"v", DType::kF32, false, {2}}},
      {{0, 0, 0, {{0, 0}, {4, 4}}},
       {0, 1, 0, {{0, 4}, {4, 2}}},
       {1, 0, 0, {}},
       {1, 1, 0, {}},
       {2, 0, 0, {{3}, {2}}},
       {2, 1, 0, {{0}, {3}}},
       {3, 0, 0, {{0}, {1}}},
       {3, 1, 0, {{1}, {1}}}});
  const auto ruled = FindRules(layout);
  ASSERT_TRUE(ruled.ok());
  ASSERT_FALSE(ruled->grids.Has(2));
  for (const Layout& whole : {layout, *ruled}) {
    const Layout some = SelectArrays(whole, {1, 2, 3});
    ASSERT_TRUE(ValidateLayout(some).ok());
    ASSERT_EQ(some.arrays.size(), 3u);
    const std::vector<Piece> pieces = LayoutIndex(some).PiecesOf(1);
    ASSERT_EQ(pieces.size(), 3u);
    EXPECT_EQ(pieces[0].box.ToString(), "[]");
    EXPECT_EQ(some.arrays[pieces[1].array].name, "odd");
    EXPECT_EQ(pieces[1].box.ToString(), "[0:3]");
    EXPECT_EQ(some.arrays[pieces[2].array].name, "v");
    EXPECT_EQ(pieces[2].box.ToString(), "[1:2]");
  }
}

}  // namespace
}  // namespace cairn
