#include "planner/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/layout_builder.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;

MATCHER_P4(IsAxis, count, rank_stride, part_stride, dim, "") {
  return arg == (GridAxis{static_cast<uint32_t>(count), static_cast<uint32_t>(rank_stride),
                          static_cast<uint32_t>(part_stride), dim});
}

std::vector<std::pair<uint64_t, uint64_t>> RunsOf(const Cuts& cuts) {
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  for (const Cuts::Run& run : cuts.runs()) runs.emplace_back(run.parts, run.length);
  return runs;
}

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

TEST(Cuts, FindThePartOfAnElement) {
  const std::vector<int64_t> lengths = {4, 4, 4, 1, 3, 3};
  const Cuts cuts = Cuts::FromLengths(lengths);
  EXPECT_EQ(RunsOf(cuts), (Runs{{3, 4}, {1, 1}, {2, 3}}));
  EXPECT_EQ(cuts.parts(), 6u);
  EXPECT_EQ(cuts.extent(), 19);
  uint32_t part = 0;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    EXPECT_EQ(cuts.At(part).offset, begin);
    EXPECT_EQ(cuts.At(part).extent, length);
    for (int64_t i = 0; i < length; ++i) EXPECT_EQ(cuts.PartOf(begin + i), part);
    begin += length;
    ++part;
  }
}

TEST(Cuts, ThatDoNotFitAreRefused) {
  using Run = Cuts::Run;
  EXPECT_FALSE(Cuts::FromRuns({}).ok());
  EXPECT_FALSE(Cuts::FromRuns(std::vector<Run>{{0, 3}}).ok());
  EXPECT_FALSE(Cuts::FromRuns(std::vector<Run>{{3, 0}}).ok());
  EXPECT_FALSE(Cuts::FromRuns(std::vector<Run>{{4, uint64_t{1} << 61}}).ok());
  EXPECT_FALSE(Cuts::FromRuns(std::vector<Run>{{uint64_t{1} << 32, 1}}).ok());
  EXPECT_TRUE(Cuts::FromRuns(std::vector<Run>{{(uint64_t{1} << 32) - 1, 1}}).ok());
}

// Eight ranks as 2 x 4, rank = 4 r + c: replicas along r, rows of [10, 6] along c: 3, 3, 3, 1.
TEST(GridRule, IsFoundForReplicasTimesRows) {
  std::vector<RankPieces> holders;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    const int64_t row = rank % 4 * 3;
    holders.push_back({rank, {Box{{row, 0}, {std::min<int64_t>(3, 10 - row), 6}}}});
  }
  const auto rule = FindRule({10, 6}, holders);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->first_rank, 0u);
  EXPECT_THAT(rule->axes, ElementsAre(IsAxis(2, 4, 0, -1), IsAxis(4, 1, 1, 0)));
  EXPECT_EQ(RunsOf(rule->cuts[0]), (Runs{{3, 3}, {1, 1}}));
  EXPECT_EQ(RunsOf(rule->cuts[1]), (Runs{{1, 6}}));
}

// Ranks 2, 3, 6, 7 of a larger world hold quarters of the rows; the first mesh axis counts slower but divides finer.
TEST(GridRule, IsFoundForSomeRanksAndForAnyOrderOfSignificance) {
  std::vector<RankPieces> holders;
  for (const auto& [rank, part] : {std::pair(2u, 0), std::pair(3u, 2), std::pair(6u, 1), std::pair(7u, 3)})
    holders.push_back({rank, {Box{{part * 2, 0}, {2, 5}}}});
  const auto rule = FindRule({8, 5}, holders);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->first_rank, 2u);
  EXPECT_THAT(rule->axes, ElementsAre(IsAxis(2, 4, 1, 0), IsAxis(2, 1, 2, 0)));
}

// Two ranks, six blocks of two rows dealt out in turns.
TEST(GridRule, IsFoundForBlocksDealtOutInTurns) {
  std::vector<RankPieces> holders(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    holders[rank].rank = rank;
    for (int64_t turn = 0; turn < 3; ++turn) holders[rank].boxes.push_back({{(turn * 2 + rank) * 2}, {2}});
  }
  const auto rule = FindRule({12}, holders);
  ASSERT_TRUE(rule.has_value());
  EXPECT_THAT(rule->axes, ElementsAre(IsAxis(2, 1, 1, 0), IsAxis(3, 0, 2, 0)));
}

TEST(GridRule, IsNotFoundWhereThereIsNone) {
  const auto found = [](const Dims& shape, std::vector<RankPieces> holders) {
    return FindRule(shape, holders).has_value();
  };
  EXPECT_TRUE(found({4}, {{0, {Box{{0}, {2}}}}, {1, {Box{{2}, {2}}}}}));
  EXPECT_FALSE(found({4}, {{0, {Box{{0}, {3}}}}, {1, {Box{{2}, {2}}}}})) << "overlap";
  EXPECT_FALSE(found({5}, {{0, {Box{{0}, {2}}}}, {1, {Box{{2}, {2}}}}})) << "a hole at the end";
  EXPECT_FALSE(found({4}, {{0, {Box{{2}, {2}}}}, {1, {Box{{0}, {2}}}}})) << "backwards";
  EXPECT_FALSE(found({4}, {{0, {Box{{0}, {4}}, Box{{0}, {4}}}}})) << "twice on one rank";
  EXPECT_FALSE(found({2, 2}, {{0, {Box{{0, 0}, {1, 1}}}}, {1, {Box{{1, 1}, {1, 1}}}}})) << "a diagonal";
  EXPECT_FALSE(found({4}, {})) << "no piece at all";
  EXPECT_FALSE(found({2}, {{0, {Box{{0}, {1}}}}, {1, {Box{{1}, {1}}}}, {2, {Box{{1}, {1}}}}})) << "uneven";
}

TEST(GridRule, ThatIsImpossibleIsRefused) {
  GridTable good;
  good.cuts = {*Cuts::FromRuns(std::vector<Cuts::Run>{{4, 2}}),
               *Cuts::FromRuns(std::vector<Cuts::Run>{{1, 7}})};
  good.rules = {{0, {{2, 4, 0, -1}, {4, 1, 1, 0}}, {0, 1}}};
  good.rule_of = {0, kNoRule};
  ASSERT_TRUE(CheckGrids(good, 8).ok());
  EXPECT_FALSE(CheckGrids(good, 7).ok()) << "more ranks than there are";
  const std::vector<std::pair<const char*, void (*)(GridTable&)>> faults = {
      {"a rule that is not there", [](GridTable& g) { g.rule_of[0] = 1; }},
      {"cuts that are not there", [](GridTable& g) { g.rules[0].cuts[0] = 2; }},
      {"a first rank too high", [](GridTable& g) { g.rules[0].first_rank = 1; }},
      {"an axis of one", [](GridTable& g) { g.rules[0].axes[0].count = 1; }},
      {"two digits for one rank", [](GridTable& g) { g.rules[0].axes[0].rank_stride = 3; }},
      {"parts that nobody has", [](GridTable& g) { g.rules[0].axes[1].count = 3; }},
      {"parts out of step", [](GridTable& g) { g.rules[0].axes[1].part_stride = 2; }},
      {"a dimension too many", [](GridTable& g) { g.rules[0].axes[1].dim = 2; }},
      {"replicas with parts", [](GridTable& g) { g.rules[0].axes[0].part_stride = 1; }},
      {"replicas on one rank",
       [](GridTable& g) {
         g.rules[0].axes.push_back({2, 0, 0, -1});
       }},
      {"too many axes",
       [](GridTable& g) {
         g.rules[0].axes.assign(17, GridAxis{2, 0, 1, 0});
       }},
  };
  for (const auto& [what, break_it] : faults) {
    GridTable grids = good;
    break_it(grids);
    EXPECT_FALSE(CheckGrids(grids, 8).ok()) << what;
  }
}

// Arrays of one shape and one distribution share one rule; rules share cuts.
TEST(LayoutBuilder, KeepsEqualArraysOnce) {
  std::vector<ArraySpec> arrays = {{"a", DType::kF32, false, {8, 4}},
                                   {"b", DType::kBF16, false, {8, 4}},
                                   {"c", DType::kF32, false, {8, 4}},
                                   {"d", DType::kF32, false, {8}}};
  Result<LayoutBuilder> builder = LayoutBuilder::Make(arrays);
  ASSERT_TRUE(builder.ok());
  for (int64_t rank = 0; rank < 4; ++rank) {
    const std::vector<std::vector<Box>> lists = {
        {Box{{rank * 2, 0}, {2, 4}}}, {Box::Whole({8, 4})}, {Box{{rank * 2}, {2}}}};
    ASSERT_TRUE(builder->AddRank(std::vector<uint32_t>{0, 0, 1, 2}, lists).ok());
  }
  const Result<Layout> layout = std::move(*builder).Finish();
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->world_size, 4u);
  EXPECT_TRUE(layout->pieces.empty());
  EXPECT_THAT(layout->grids.rule_of, ElementsAre(0, 0, 2, 1));
  EXPECT_EQ(layout->grids.cuts.size(), 3u);  // of 8 rows into 2 each, of 4 and of 8 not at all
}

TEST(LayoutBuilder, NamesTheHoleOfAnArray) {
  Result<LayoutBuilder> builder = LayoutBuilder::Make({{"u", DType::kF64, false, {6}}});
  ASSERT_TRUE(builder.ok());
  ASSERT_TRUE(
      builder->AddRank(std::vector<uint32_t>{0}, std::vector<std::vector<Box>>{{Box{{0}, {2}}}}).ok());
  ASSERT_TRUE(
      builder->AddRank(std::vector<uint32_t>{0}, std::vector<std::vector<Box>>{{Box{{3}, {3}}}}).ok());
  EXPECT_EQ(
      std::move(*builder).Finish().status().message(),
      "array 'u' of shape [6]: no rank holds elements [2:3]; the pieces of all ranks together must cover the "
      "array");
}

}  // namespace
}  // namespace cairn
