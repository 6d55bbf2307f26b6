#include "planner/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LoadPlanOptions kExact{.page_bytes = 0, .max_gap_bytes = 0, .max_waste = 0};

MATCHER_P3(Reads, file, offset, bytes, "") {
  return arg.file == static_cast<uint32_t>(file) && arg.offset == static_cast<uint64_t>(offset) &&
         arg.bytes == static_cast<uint64_t>(bytes);
}
MATCHER_P4(Copies, wanted, region, source_offset, source_stride, "") {
  return arg.wanted == static_cast<uint32_t>(wanted) && arg.region == region &&
         arg.source_offset == static_cast<uint64_t>(source_offset) && arg.source_stride == source_stride;
}

LoadPlan PlanOf(const SavedLayout& saved, const std::vector<WantedBox>& wanted,
                const LoadPlanOptions& options) {
  Result<LoadPlan> plan = PlanLoad(saved, wanted, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *std::move(plan) : LoadPlan{};
}

// One array of `elements` bytes in one box at offset 0 of file 0.
SavedLayout Bytes(int64_t elements) {
  return {{{"b", DType::kU8, false, {elements}}}, {{0, 0, 0, {{0}, {elements}}}}};
}

// [8, 4] doubles in four files of two rows, behind a header of 100 bytes.
const SavedLayout kFourBlockRows{{{"u", DType::kF64, false, {8, 4}}},
                                 {{0, 0, 100, {{0, 0}, {2, 4}}},
                                  {0, 1, 100, {{2, 0}, {2, 4}}},
                                  {0, 2, 100, {{4, 0}, {2, 4}}},
                                  {0, 3, 100, {{6, 0}, {2, 4}}}}};

TEST(LoadPlan, LoadsFourBlockRowsIntoTwo) {
  const LoadPlan plan = PlanOf(kFourBlockRows, {{0, {{4, 0}, {4, 4}}}}, {});
  ASSERT_THAT(plan.ranges, ElementsAre(Reads(2, 100, 64), Reads(3, 100, 64)));
  EXPECT_THAT(plan.ranges[0].copies, ElementsAre(Copies(0, Box{{4, 0}, {2, 4}}, 0, Dims{32, 8})));
  EXPECT_THAT(plan.ranges[1].copies, ElementsAre(Copies(0, Box{{6, 0}, {2, 4}}, 0, Dims{32, 8})));
  EXPECT_EQ(plan.needed_bytes, 128u);
  EXPECT_EQ(plan.read_bytes, 128u);
}

TEST(LoadPlan, LoadsPartOfABlockRow) {
  const LoadPlan plan = PlanOf(kFourBlockRows, {{0, {{3, 1}, {2, 2}}}}, {});
  EXPECT_THAT(plan.ranges, ElementsAre(Reads(1, 140, 16), Reads(2, 108, 16)));
}

// [4, 6] doubles in a grid of 2 x 2 blocks of 2 x 3, a file each; wanted by 1 x 3 ranks, of 4 x 2 each.
class TwoByTwoToOneByThree : public ::testing::Test {
 protected:
  const SavedLayout saved_{{{"u", DType::kF64, false, {4, 6}}},
                           {{0, 0, 0, {{0, 0}, {2, 3}}},
                            {0, 1, 0, {{0, 3}, {2, 3}}},
                            {0, 2, 0, {{2, 0}, {2, 3}}},
                            {0, 3, 0, {{2, 3}, {2, 3}}}}};
};

TEST_F(TwoByTwoToOneByThree, RowByRowWhereNothingMayBeReadInVain) {
  const LoadPlan left = PlanOf(saved_, {{0, {{0, 0}, {4, 2}}}}, kExact);
  EXPECT_THAT(left.ranges, ElementsAre(Reads(0, 0, 16), Reads(0, 24, 16), Reads(2, 0, 16), Reads(2, 24, 16)));
  EXPECT_EQ(left.read_bytes, 64u);

  const LoadPlan middle = PlanOf(saved_, {{0, {{0, 2}, {4, 2}}}}, kExact);
  EXPECT_THAT(middle.ranges, ElementsAre(Reads(0, 16, 8), Reads(0, 40, 8), Reads(1, 0, 8), Reads(1, 24, 8),
                                         Reads(2, 16, 8), Reads(2, 40, 8), Reads(3, 0, 8), Reads(3, 24, 8)));
  EXPECT_EQ(middle.needed_bytes, 64u);

  const LoadPlan right = PlanOf(saved_, {{0, {{0, 4}, {4, 2}}}}, kExact);
  EXPECT_THAT(right.ranges,
              ElementsAre(Reads(1, 8, 16), Reads(1, 32, 16), Reads(3, 8, 16), Reads(3, 32, 16)));
}

TEST_F(TwoByTwoToOneByThree, InOneReadOfEachFileWhereGapsAreSmallerThanAPage) {
  const LoadPlan middle = PlanOf(saved_, {{0, {{0, 2}, {4, 2}}}}, {});
  ASSERT_THAT(middle.ranges,
              ElementsAre(Reads(0, 16, 32), Reads(1, 0, 32), Reads(2, 16, 32), Reads(3, 0, 32)));
  EXPECT_THAT(middle.ranges[3].copies, ElementsAre(Copies(0, Box{{2, 3}, {2, 1}}, 0, Dims{24, 8})));
  EXPECT_EQ(middle.needed_bytes, 64u);
  EXPECT_EQ(middle.read_bytes, 128u);
}

// Two stretches of 10000 bytes with `gap` unwanted bytes between them.
size_t RangesAround(int64_t gap, const LoadPlanOptions& options) {
  const std::vector<WantedBox> wanted = {{0, {{0}, {10000}}}, {0, {{10000 + gap}, {10000}}}};
  return PlanOf(Bytes(20000 + gap), wanted, options).ranges.size();
}

TEST(LoadPlan, ReadsAGapAlongUpToTheWasteLimit) {
  const LoadPlanOptions options{.page_bytes = 0, .max_gap_bytes = 5000, .max_waste = 0.05};
  EXPECT_EQ(RangesAround(1000, options), 1u);
  EXPECT_EQ(RangesAround(1001, options), 2u);
}

TEST(LoadPlan, ReadsAGapAlongUpToTheGapLimit) {
  const LoadPlanOptions options{.page_bytes = 0, .max_gap_bytes = 800, .max_waste = 0.05};
  EXPECT_EQ(RangesAround(800, options), 1u);
  EXPECT_EQ(RangesAround(801, options), 2u);
}

TEST(LoadPlan, ReadsAGapAlongThatIsSmallerThanAPageWhateverTheWaste) {
  const LoadPlanOptions options{.page_bytes = 4096, .max_gap_bytes = 0, .max_waste = 0};
  EXPECT_EQ(RangesAround(4095, options), 1u);
  EXPECT_EQ(RangesAround(4096, options), 2u);
}

TEST(LoadPlan, ReadsOnceWhatTwoWantedBoxesShare) {
  const LoadPlan plan = PlanOf(Bytes(100), {{0, {{0}, {60}}}, {0, {{40}, {60}}}, {0, {{40}, {60}}}}, kExact);
  ASSERT_THAT(plan.ranges, ElementsAre(Reads(0, 0, 100)));
  EXPECT_THAT(plan.ranges[0].copies,
              ElementsAre(Copies(0, Box{{0}, {60}}, 0, Dims{1}), Copies(1, Box{{40}, {60}}, 40, Dims{1}),
                          Copies(2, Box{{40}, {60}}, 40, Dims{1})));
  EXPECT_EQ(plan.needed_bytes, 100u);
}

TEST(LoadPlan, TakesEachElementFromOneOfTheSavedBoxesThatOverlap) {
  const SavedLayout saved{{{"b", DType::kU8, false, {10}}}, {{0, 0, 0, {{0}, {6}}}, {0, 1, 0, {{4}, {6}}}}};
  const LoadPlan plan = PlanOf(saved, {{0, {{0}, {10}}}}, kExact);
  EXPECT_THAT(plan.ranges, ElementsAre(Reads(0, 0, 6), Reads(1, 2, 4)));
  EXPECT_EQ(plan.read_bytes, 10u);
}

TEST(LoadPlan, CutsLongRanges) {
  LoadPlanOptions options;
  options.max_range_bytes = 256;
  EXPECT_THAT(PlanOf(Bytes(800), {{0, {{0}, {800}}}}, options).ranges,
              ElementsAre(Reads(0, 0, 256), Reads(0, 256, 256), Reads(0, 512, 256), Reads(0, 768, 32)));
}

TEST(LoadPlan, CutsLongRangesAlsoWhereWantedBoxesOverlapInAChain) {
  LoadPlanOptions options;
  options.max_range_bytes = 256;
  EXPECT_THAT(
      PlanOf(Bytes(600), {{0, {{0}, {200}}}, {0, {{100}, {300}}}, {0, {{300}, {300}}}}, options).ranges,
      ElementsAre(Reads(0, 0, 256), Reads(0, 256, 256), Reads(0, 512, 88)));
}

TEST(LoadPlan, CutsRowsThatAreLongerThanARange) {
  LoadPlanOptions options;
  options.max_range_bytes = 4;
  const SavedLayout saved{{{"b", DType::kU8, false, {2, 6}}}, {{0, 0, 0, {{0, 0}, {2, 6}}}}};
  EXPECT_THAT(PlanOf(saved, {{0, {{0, 0}, {2, 6}}}}, options).ranges,
              ElementsAre(Reads(0, 0, 4), Reads(0, 4, 2), Reads(0, 6, 4), Reads(0, 10, 2)));
}

TEST(LoadPlan, MergesNeighboursOfDifferentArrays) {
  const SavedLayout saved{{{"lr", DType::kF32, false, {}}, {"n", DType::kI64, false, {}}},
                          {{0, 0, 1000, {}}, {1, 0, 1004, {}}}};
  const LoadPlan plan = PlanOf(saved, {{1, {}}, {0, {}}}, kExact);
  ASSERT_THAT(plan.ranges, ElementsAre(Reads(0, 1000, 12)));
  EXPECT_THAT(plan.ranges[0].copies, ElementsAre(Copies(1, Box{}, 0, Dims{}), Copies(0, Box{}, 4, Dims{})));
  EXPECT_EQ(plan.needed_bytes, 12u);
}

TEST(LoadPlan, ReadsNothingForNothing) {
  const LoadPlan plan = PlanOf(Bytes(10), {{0, {{3}, {0}}}}, {});
  EXPECT_THAT(plan.ranges, IsEmpty());
  EXPECT_EQ(plan.needed_bytes, 0u);
  EXPECT_THAT(PlanOf(Bytes(10), {}, {}).ranges, IsEmpty());
}

TEST(LoadPlan, NamesTheArrayAndTheFirstHole) {
  SavedLayout saved = kFourBlockRows;
  saved.boxes.erase(saved.boxes.begin() + 2);
  const Status status = PlanLoad(saved, {{0, {{0, 0}, {8, 4}}}}).status();
  EXPECT_EQ(status.code(), Code::kDamage);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("'u'"), HasSubstr("[4:6, 0:4]")));
  EXPECT_TRUE(PlanLoad(saved, {{0, {{0, 0}, {4, 4}}}}).ok()) << "a hole that nobody wants";
}

TEST(LoadPlan, CallsASavedBoxOutsideItsArrayDamage) {
  SavedLayout saved = Bytes(10);
  saved.boxes[0].box.extent[0] = 11;
  EXPECT_EQ(PlanLoad(saved, {{0, {{0}, {10}}}}).status().code(), Code::kDamage);
  saved = Bytes(10);
  saved.boxes[0].file_offset = UINT64_MAX - 5;
  EXPECT_EQ(PlanLoad(saved, {{0, {{0}, {10}}}}).status().code(), Code::kDamage);
  saved = Bytes(10);
  saved.boxes[0].array = 1;
  EXPECT_EQ(PlanLoad(saved, {{0, {{0}, {10}}}}).status().code(), Code::kDamage);
}

TEST(LoadPlan, RefusesAWantedBoxThatDoesNotFit) {
  EXPECT_EQ(PlanLoad(Bytes(10), {{0, {{5}, {6}}}}).status().code(), Code::kInvalid);
  EXPECT_EQ(PlanLoad(Bytes(10), {{0, {{0, 0}, {1, 1}}}}).status().code(), Code::kInvalid);
  EXPECT_EQ(PlanLoad(Bytes(10), {{1, {{0}, {1}}}}).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
