#include "planner/save_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MATCHER_P4(Writes, array, ordinal, file, box, "") {
  return arg.array == static_cast<uint32_t>(array) && arg.piece_ordinal == static_cast<uint32_t>(ordinal) &&
         arg.file == static_cast<uint32_t>(file) && arg.box == box;
}
MATCHER_P2(IsFile, rank, number, "") {
  return arg.rank == static_cast<uint32_t>(rank) && arg.number == static_cast<uint32_t>(number);
}

SavePlan PlanOf(uint32_t world_size, std::vector<ArraySpec> arrays, std::vector<Piece> pieces,
                uint64_t min_split_bytes = 1) {
  Result<SavePlan> plan =
      PlanSave(MakeLayout(world_size, std::move(arrays), std::move(pieces)), {min_split_bytes});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *std::move(plan) : SavePlan{};
}

std::vector<Piece> OnAllRanks(uint32_t world_size, uint32_t array, const Box& box) {
  std::vector<Piece> pieces;
  for (uint32_t rank = 0; rank < world_size; ++rank) pieces.push_back({array, rank, 0, box});
  return pieces;
}

std::vector<uint64_t> BytesByRank(const std::vector<ArraySpec>& arrays, const SavePlan& plan) {
  std::vector<uint64_t> bytes;
  for (const std::vector<WriteBox>& boxes : plan.boxes) {
    bytes.push_back(0);
    for (const WriteBox& b : boxes) {
      bytes.back() += static_cast<uint64_t>(b.box.elements() * DTypeBytes(arrays[b.array].dtype));
    }
  }
  return bytes;
}

TEST(SavePlan, SplitsAReplicatedPieceOfThreeHoldersByRows) {
  const SavePlan plan = PlanOf(3, {{"w", DType::kF32, false, {9, 2}}}, OnAllRanks(3, 0, Box::Whole({9, 2})));
  EXPECT_THAT(plan.files, ElementsAre(IsFile(0, 1), IsFile(1, 2), IsFile(2, 3)));
  EXPECT_THAT(plan.boxes, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0, 0}, {3, 2}})),
                                      ElementsAre(Writes(0, 0, 1, Box{{3, 0}, {3, 2}})),
                                      ElementsAre(Writes(0, 0, 2, Box{{6, 0}, {3, 2}}))));
  EXPECT_EQ(plan.bytes, 72u);
}

TEST(SavePlan, SplitsRowsThatDoNotDivideEvenly) {
  const SavePlan plan = PlanOf(3, {{"w", DType::kU8, false, {10}}}, OnAllRanks(3, 0, Box::Whole({10})));
  EXPECT_THAT(plan.boxes, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {3}})),
                                      ElementsAre(Writes(0, 0, 1, Box{{3}, {3}})),
                                      ElementsAre(Writes(0, 0, 2, Box{{6}, {4}}))));
}

TEST(SavePlan, SplitsAmongAsManyHoldersAsThereAreRows) {
  const SavePlan plan = PlanOf(3, {{"w", DType::kF32, false, {2, 4}}}, OnAllRanks(3, 0, Box::Whole({2, 4})));
  EXPECT_THAT(plan.boxes, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0, 0}, {1, 4}})),
                                      ElementsAre(Writes(0, 0, 1, Box{{1, 0}, {1, 4}})), IsEmpty()));
  EXPECT_THAT(plan.files, ElementsAre(IsFile(0, 1), IsFile(1, 2)));
}

TEST(SavePlan, GivesASmallReplicatedPieceWholeToTheLeastLoadedHolder) {
  std::vector<Piece> pieces = OnAllRanks(3, 0, Box::Whole({100}));
  pieces.push_back({1, 0, 0, Box::Whole({1})});
  const SavePlan plan =
      PlanOf(3, {{"w", DType::kU8, false, {100}}, {"mine", DType::kU8, false, {1}}}, pieces, 51);
  EXPECT_THAT(plan.boxes, ElementsAre(ElementsAre(Writes(1, 0, 0, Box{{0}, {1}})),
                                      ElementsAre(Writes(0, 0, 1, Box{{0}, {100}})), IsEmpty()));
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

TEST(SavePlan, PlacesTheLargestReplicatedPiecesFirst) {
  std::vector<ArraySpec> arrays;
  std::vector<Piece> pieces;
  for (const int64_t bytes : {100, 100, 200}) {  // one row each
    arrays.push_back({"w" + std::to_string(arrays.size()), DType::kU8, false, {1, bytes}});
    const auto array = static_cast<uint32_t>(arrays.size() - 1);
    for (const Piece& p : OnAllRanks(2, array, Box::Whole(arrays.back().shape))) pieces.push_back(p);
  }
  EXPECT_THAT(BytesByRank(arrays, PlanOf(2, arrays, pieces)), ElementsAre(200, 200));
}

TEST(SavePlan, GivesLessOfAReplicatedPieceToAHolderWithMoreOfItsOwn) {
  std::vector<Piece> pieces = OnAllRanks(2, 0, Box::Whole({1000}));
  pieces.push_back({1, 0, 0, Box::Whole({600})});
  const SavePlan plan =
      PlanOf(2, {{"w", DType::kU8, false, {1000}}, {"mine", DType::kU8, false, {600}}}, pieces);
  EXPECT_THAT(plan.boxes,
              ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {200}}), Writes(1, 0, 0, Box{{0}, {600}})),
                          ElementsAre(Writes(0, 0, 1, Box{{200}, {800}}))));
}

TEST(SavePlan, PutsARanksSecondBoxOfAnArrayInItsSecondFile) {
  const SavePlan plan =
      PlanOf(2, {{"u", DType::kU8, false, {6}}, {"v", DType::kU8, false, {1}}},
             {{0, 0, 0, {{4}, {2}}}, {0, 0, 0, {{0}, {2}}}, {0, 1, 0, {{2}, {2}}}, {1, 0, 0, {{0}, {1}}}});
  EXPECT_THAT(plan.files, ElementsAre(IsFile(0, 1), IsFile(1, 2), IsFile(0, 3)));
  EXPECT_THAT(plan.boxes,
              ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{4}, {2}}), Writes(1, 0, 0, Box{{0}, {1}}),
                                      Writes(0, 1, 2, Box{{0}, {2}})),
                          ElementsAre(Writes(0, 0, 1, Box{{2}, {2}}))));
}

TEST(SavePlan, LeavesOutEmptyPiecesAndFilesWithoutBoxes) {
  const SavePlan plan = PlanOf(3, {{"u", DType::kU8, false, {4}}, {"nothing", DType::kU8, false, {0}}},
                               {{0, 0, 0, {{2}, {0}}}, {0, 2, 0, {{0}, {4}}}, {1, 1, 0, {{0}, {0}}}});
  EXPECT_THAT(plan.files, ElementsAre(IsFile(2, 3)));
  EXPECT_THAT(plan.boxes, ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(Writes(0, 0, 0, Box{{0}, {4}}))));
}

TEST(SavePlan, WritesABoxOnceThatARankRegisteredTwice) {
  const SavePlan plan =
      PlanOf(1, {{"u", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {4}}}, {0, 0, 0, {{0}, {4}}}});
  EXPECT_THAT(plan.boxes, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {4}}))));
  EXPECT_EQ(plan.bytes, 4u);
}

TEST(SavePlan, WritesPiecesWholeThatOverlapWithoutBeingEqual) {
  const SavePlan plan =
      PlanOf(2, {{"u", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {3}}}, {0, 1, 0, {{1}, {3}}}});
  EXPECT_THAT(plan.boxes, ElementsAre(ElementsAre(Writes(0, 0, 0, Box{{0}, {3}})),
                                      ElementsAre(Writes(0, 0, 1, Box{{1}, {3}}))));
  EXPECT_EQ(plan.bytes, 6u);
}

// Whatever is replicated everywhere comes out level up to two rows and two of the smallest parts.
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
    const std::vector<uint64_t> bytes = BytesByRank(arrays, PlanOf(world_size, arrays, pieces, kMinPart));
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_LE(*most - *least, 2 * kLongestRow + 2 * kMinPart);
  }
}

TEST(SavePlan, IsTheSameEachTime) {
  Random random(7);
  const Layout layout = RandomLayout(random, RandomArrays(random), 9);
  const Result<SavePlan> a = PlanSave(layout, {1}), b = PlanSave(layout, {1});
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->boxes.size(), b->boxes.size());
  for (size_t rank = 0; rank < a->boxes.size(); ++rank) {
    ASSERT_EQ(a->boxes[rank].size(), b->boxes[rank].size());
    for (size_t i = 0; i < a->boxes[rank].size(); ++i) {
      const WriteBox& box = a->boxes[rank][i];
      EXPECT_THAT(b->boxes[rank][i], Writes(box.array, box.piece_ordinal, box.file, box.box));
    }
  }
}

TEST(SavePlan, RefusesALayoutWithAHole) {
  const Result<SavePlan> plan =
      PlanSave(MakeLayout(1, {{"u", DType::kU8, false, {4}}}, {{0, 0, 0, {{0}, {3}}}}));
  EXPECT_EQ(plan.status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
