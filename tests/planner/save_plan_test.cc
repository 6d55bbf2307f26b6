#include "planner/save_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/layout_builder.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MATCHER_P4(Writes, array, ordinal, file, box, "") {
  return arg.array == static_cast<uint32_t>(array) && arg.piece_ordinal == static_cast<uint32_t>(ordinal) &&
         arg.file == static_cast<uint32_t>(file) && arg.box == box;
}

using BoxesByRank = std::vector<std::vector<WriteBox>>;

BoxesByRank BoxesOfAll(const Layout& layout, uint64_t min_split_bytes) {
  const Result<SavePlan> plan = PlanSave(layout, {min_split_bytes});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  BoxesByRank boxes;
  for (uint32_t rank = 0; plan.ok() && rank < layout.world_size; ++rank) boxes.push_back(plan->BoxesOf(rank));
  return boxes;
}

BoxesByRank PlanOf(uint32_t world_size, std::vector<ArraySpec> arrays, std::vector<Piece> pieces,
                   uint64_t min_split_bytes = 1) {
  const Layout listed = MakeLayout(world_size, std::move(arrays), std::move(pieces));
  return BoxesOfAll(listed, min_split_bytes);
}

std::vector<Piece> OnAllRanks(uint32_t world_size, uint32_t array, const Box& box) {
  std::vector<Piece> pieces;
  for (uint32_t rank = 0; rank < world_size; ++rank) pieces.push_back({array, rank, 0, box});
  return pieces;
}

std::vector<uint64_t> BytesByRank(const std::vector<ArraySpec>& arrays, const BoxesByRank& by_rank) {
  std::vector<uint64_t> bytes;
  for (const std::vector<WriteBox>& boxes : by_rank) {
    bytes.push_back(0);
    for (const WriteBox& b : boxes)
      bytes.back() += static_cast<uint64_t>(b.box.elements() * DTypeBytes(arrays[b.array].dtype));
  }
  return bytes;
}

TEST(SavePlan, SplitsAReplicatedPieceOfThreeHoldersByRows) {
  const BoxesByRank plan =
      PlanOf(3, {{"w", DType::kF32, false, {9, 2}}}, OnAllRanks(3, 0, Box::Whole({9, 2})));
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0, 0}, {3, 2}})),
                                ElementsAre(Writes(0, 0, 0, Box{{3, 0}, {3, 2}})),
                                ElementsAre(Writes(0, 0, 0, Box{{6, 0}, {3, 2}}))));
}

// Borders at bytes 3 and 6 of 10.
TEST(SavePlan, SplitsRowsThatDoNotDivideEvenly) {
  const BoxesByRank plan = PlanOf(3, {{"w", DType::kU8, false, {10}}}, OnAllRanks(3, 0, Box::Whole({10})));
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {3}})),
                                ElementsAre(Writes(0, 0, 0, Box{{3}, {3}})),
                                ElementsAre(Writes(0, 0, 0, Box{{6}, {4}}))));
}

// 32 bytes in two rows of 16: borders at 10 and 21 go to the nearest row, which is the same.
TEST(SavePlan, CutsNoRow) {
  const BoxesByRank plan =
      PlanOf(3, {{"w", DType::kF32, false, {2, 4}}}, OnAllRanks(3, 0, Box::Whole({2, 4})));
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0, 0}, {1, 4}})), IsEmpty(),
                                ElementsAre(Writes(0, 0, 0, Box{{1, 0}, {1, 4}}))));
}

// 300 bytes end to end, borders at 100 and 200: rank 1 gets the rest of the first array and most of the second.
TEST(SavePlan, LaysReplicatedArraysEndToEnd) {
  std::vector<Piece> pieces = OnAllRanks(3, 0, Box::Whole({120}));
  for (const Piece& p : OnAllRanks(3, 1, Box::Whole({180}))) pieces.push_back(p);
  const BoxesByRank plan =
      PlanOf(3, {{"a", DType::kU8, false, {120}}, {"b", DType::kU8, false, {180}}}, pieces);
  EXPECT_THAT(plan,
              ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {100}})),
                          ElementsAre(Writes(0, 0, 0, Box{{100}, {20}}), Writes(1, 0, 0, Box{{0}, {80}})),
                          ElementsAre(Writes(1, 0, 0, Box{{80}, {100}}))));
}

// Segments of at least 100 bytes: 250 bytes make two, for the first rank and the third of four.
TEST(SavePlan, LetsFewWritersThatStandApartShareLittle) {
  const BoxesByRank plan =
      PlanOf(4, {{"w", DType::kU8, false, {250}}}, OnAllRanks(4, 0, Box::Whole({250})), 100);
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {125}})), IsEmpty(),
                                ElementsAre(Writes(0, 0, 0, Box{{125}, {125}})), IsEmpty()));
}

// The border at 150 of 300 would leave 30 bytes of the first array: it moves to the array's end.
TEST(SavePlan, CutsOffNoPartThatIsTooSmall) {
  std::vector<Piece> pieces = OnAllRanks(2, 0, Box::Whole({180}));
  for (const Piece& p : OnAllRanks(2, 1, Box::Whole({120}))) pieces.push_back(p);
  const BoxesByRank plan =
      PlanOf(2, {{"a", DType::kU8, false, {180}}, {"b", DType::kU8, false, {120}}}, pieces, 50);
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {180}})),
                                ElementsAre(Writes(1, 0, 0, Box{{0}, {120}}))));
}

// Here it would leave 30 bytes of the second array: it moves to the array's beginning.
TEST(SavePlan, CutsOffNoPartThatIsTooSmallInFront) {
  std::vector<Piece> pieces = OnAllRanks(2, 0, Box::Whole({120}));
  for (const Piece& p : OnAllRanks(2, 1, Box::Whole({180}))) pieces.push_back(p);
  const BoxesByRank plan =
      PlanOf(2, {{"a", DType::kU8, false, {120}}, {"b", DType::kU8, false, {180}}}, pieces, 50);
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {120}})),
                                ElementsAre(Writes(1, 0, 0, Box{{0}, {180}}))));
}

// Ranks 0 and 1 hold the upper half, 2 and 3 the lower; each pair shares its own.
TEST(SavePlan, SharesAmongTheReplicasOfAPiece) {
  std::vector<Piece> pieces;
  for (uint32_t rank = 0; rank < 4; ++rank) pieces.push_back({0, rank, 0, {{rank / 2 * 4, 0}, {4, 2}}});
  const std::vector<ArraySpec> arrays = {{"w", DType::kU8, false, {8, 2}}};
  const Layout listed = MakeLayout(4, arrays, pieces);
  const Result<Layout> ruled = FindRules(listed);
  ASSERT_TRUE(ruled.ok() && ruled->grids.Has(0));
  for (const Layout* layout : {&listed, &*ruled}) {
    EXPECT_THAT(BoxesOfAll(*layout, 1), ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0, 0}, {2, 2}})),
                                                    ElementsAre(Writes(0, 0, 0, Box{{2, 0}, {2, 2}})),
                                                    ElementsAre(Writes(0, 0, 0, Box{{4, 0}, {2, 2}})),
                                                    ElementsAre(Writes(0, 0, 0, Box{{6, 0}, {2, 2}}))));
  }
}

TEST(SavePlan, SpreadsReplicatedScalarsOverTheirHolders) {
  std::vector<ArraySpec> arrays;
  std::vector<Piece> pieces;
  for (uint32_t a = 0; a < 6; ++a) {
    arrays.push_back({"s" + std::to_string(a), DType::kI64, false, {}});
    for (const Piece& p : OnAllRanks(3, a, Box{})) pieces.push_back(p);
  }
  EXPECT_THAT(BytesByRank(arrays, PlanOf(3, arrays, pieces)), ElementsAre(16, 16, 16));
}

TEST(SavePlan, PutsARanksSecondBoxOfAnArrayInItsSecondFile) {
  const BoxesByRank plan =
      PlanOf(2, {{"u", DType::kU8, false, {6}}, {"v", DType::kU8, false, {1}}},
             {{0, 0, 0, {{4}, {2}}}, {0, 0, 0, {{0}, {2}}}, {0, 1, 0, {{2}, {2}}}, {1, 0, 0, {{0}, {1}}}});
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{4}, {2}}), Writes(1, 0, 0, Box{{0}, {1}}),
                                            Writes(0, 1, 1, Box{{0}, {2}})),
                                ElementsAre(Writes(0, 0, 0, Box{{2}, {2}}))));
  EXPECT_EQ(FileNumber(2, 0, 0), 1u);
  EXPECT_EQ(FileNumber(2, 1, 0), 2u);
  EXPECT_EQ(FileNumber(2, 0, 1), 3u);
}

// "a" and "c" have a rule, "b" and "d" have not: first the doubles, "c" before "b"; then the bytes.
TEST(SavePlan, PutsWideElementsFirstAndRulesBeforeTheRest) {
  const std::vector<ArraySpec> arrays = {{"a", DType::kU8, false, {2}},
                                         {"b", DType::kF64, false, {3}},
                                         {"c", DType::kF64, false, {1}},
                                         {"d", DType::kU8, false, {3}}};
  std::vector<Piece> pieces = {{0, 0, 0, {{0}, {2}}}, {2, 0, 0, {{0}, {1}}}};
  for (const uint32_t a : {1u, 3u}) {  // overlapping
    pieces.push_back({a, 0, 0, {{0}, {2}}});
    pieces.push_back({a, 1, 0, {{1}, {2}}});
  }
  const Result<Layout> layout = FindRules(MakeLayout(2, arrays, pieces));
  ASSERT_TRUE(layout.ok());
  EXPECT_THAT(layout->grids.rule_of,
              ElementsAre(::testing::Ne(kNoRule), kNoRule, ::testing::Ne(kNoRule), kNoRule));
  const Result<SavePlan> plan = PlanSave(*layout);
  ASSERT_TRUE(plan.ok());
  std::vector<std::pair<std::string, uint64_t>> order;
  for (const WriteBox& box : plan->BoxesOf(0)) order.emplace_back(arrays[box.array].name, box.offset);
  using Order = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(order, (Order{{"c", 0}, {"b", 8}, {"a", 24}, {"d", 26}}));
  EXPECT_EQ(plan->bytes(), 8u + 32 + 2 + 4);
}

TEST(SavePlan, LeavesOutEmptyPieces) {
  const BoxesByRank plan = PlanOf(3, {{"u", DType::kU8, false, {4}}, {"nothing", DType::kU8, false, {0}}},
                                  {{0, 0, 0, {{2}, {0}}}, {0, 2, 0, {{0}, {4}}}, {1, 1, 0, {{0}, {0}}}});
  EXPECT_THAT(plan, ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(Writes(0, 0, 0, Box{{0}, {4}}))));
}

TEST(SavePlan, WritesABoxOnceThatARankRegisteredTwice) {
  const BoxesByRank plan =
      PlanOf(1, {{"u", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {4}}}, {0, 0, 0, {{0}, {4}}}});
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {4}}))));
}

TEST(SavePlan, WritesPiecesWholeThatOverlapWithoutBeingEqual) {
  const BoxesByRank plan =
      PlanOf(2, {{"u", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {3}}}, {0, 1, 0, {{1}, {3}}}});
  EXPECT_THAT(plan, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {3}})),
                                ElementsAre(Writes(0, 0, 0, Box{{1}, {3}}))));
}

// Whatever is replicated everywhere comes out level up to two rows and two of the smallest parts, by rule or not.
TEST(SavePlan, BalancesReplicatedArraysOverRanks) {
  constexpr uint64_t kMinPart = 500, kLongestRow = 64;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto world_size = static_cast<uint32_t>(Uniform(random, 2, 9));
    std::vector<ArraySpec> arrays;
    std::vector<Piece> pieces;
    for (uint32_t a = 0; a < 60; ++a) {
      arrays.push_back({"w" + std::to_string(a), DType::kU8, false, {Uniform(random, 500, 3000)}});
      arrays.back().shape.push_back(Uniform(random, 1, kLongestRow));
      for (const Piece& p : OnAllRanks(world_size, a, Box::Whole(arrays[a].shape))) pieces.push_back(p);
    }
    const Layout listed = MakeLayout(world_size, arrays, pieces);
    const Result<Layout> ruled = FindRules(listed);
    ASSERT_TRUE(ruled.ok());
    for (const Layout* layout : {&listed, &*ruled}) {
      const std::vector<uint64_t> bytes = BytesByRank(arrays, BoxesOfAll(*layout, kMinPart));
      const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
      EXPECT_LE(*most - *least, 2 * kLongestRow + 2 * kMinPart);
    }
  }
}

TEST(SavePlan, NeedsNoLookAtOtherRanks) {
  // 16384 ranks: 2 replicas x 8192 rows; what rank 12345 writes follows from the rule.
  Layout layout;
  layout.world_size = 16384;
  layout.arrays = {{"w", DType::kBF16, false, {8192 * 4, 1 << 20}}};
  layout.grids.cuts = {*Cuts::FromRuns(std::vector<Cuts::Run>{{8192, 4}}),
                       *Cuts::FromRuns(std::vector<Cuts::Run>{{1, 1 << 20}})};
  layout.grids.rules = {{0, {{2, 8192, 0, -1}, {8192, 1, 1, 0}}, {0, 1}}};
  layout.grids.rule_of = {0};
  const Result<SavePlan> plan = PlanSave(layout);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const int64_t row = (12345 - 8192) * 4 + 2;  // the second replica writes the second half of its four rows
  EXPECT_THAT(plan->BoxesOf(12345), ElementsAre(Writes(0, 0, 0, Box{{row, 0}, {2, 1 << 20}})));
}

// Six ranks: two replicas of three parts, six replicas, and two replicas of three ranks with two parts each.
TEST(SavePlan, GivesEachFileTheSizeOfItsBoxesHoweverManyArraysShareIt) {
  Layout layout;
  layout.world_size = 6;
  const auto even = [](uint64_t parts, uint64_t length) {
    return *Cuts::FromRuns(std::vector<Cuts::Run>{{parts, length}});
  };
  layout.grids.cuts = {even(3, 7), even(1, 5), even(6, 2)};
  layout.grids.rules = {{0, {{2, 3, 0, -1}, {3, 1, 1, 0}}, {0}},
                        {0, {{6, 1, 0, -1}}, {1}},
                        {0, {{2, 3, 0, -1}, {3, 1, 1, 0}, {2, 0, 3, 0}}, {2}}};
  Random random(5);
  const auto check = [&](uint64_t min_split_bytes) {
    const Result<SavePlan> plan = PlanSave(layout, {min_split_bytes});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    for (uint32_t rank = 0; rank < 6; ++rank) {
      std::vector<uint64_t> end;  // by file
      for (const WriteBox& box : plan->BoxesOf(rank)) {
        if (box.file == end.size()) end.push_back(0);
        ASSERT_LT(box.file, end.size());
        EXPECT_EQ(box.offset, end[box.file]);
        end[box.file] +=
            static_cast<uint64_t>(box.box.elements() * DTypeBytes(layout.arrays[box.array].dtype));
      }
      EXPECT_EQ(plan->FilesOf(rank).data_bytes, end) << rank << " of " << layout.arrays.size() << " arrays";
    }
  };
  for (uint32_t a = 0; a < 1000;
       ++a) {  // with each number of arrays the ranks' shares begin and end elsewhere
    layout.grids.rule_of.push_back(static_cast<uint32_t>(Uniform(random, 0, 2)));
    layout.arrays.push_back({"a" + std::to_string(a), static_cast<DType>(Uniform(random, 0, kDTypeCount - 1)),
                             false, Grid(layout.grids, layout.grids.rule_of[a]).shape()});
    if (a >= 200) check(1);
  }
  for (const uint64_t min_split_bytes : {100, 3000, 1000000}) check(min_split_bytes);
}

TEST(SavePlan, RefusesALayoutWithAHole) {
  const Result<SavePlan> plan =
      PlanSave(MakeLayout(1, {{"u", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {3}}}}));
  EXPECT_EQ(plan.status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
