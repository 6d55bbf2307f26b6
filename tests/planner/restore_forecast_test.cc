#include "planner/restore_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr uint64_t kBlock = 64;

std::vector<RestoreForecast> ForecastAll(const SavedLayout& saved_layout, const Layout& layout,
                                         const std::vector<uint64_t>& file_bytes) {
  const auto saved = SavedIndex::Make(saved_layout);
  EXPECT_TRUE(saved.ok());
  const LayoutIndex wanted(layout);
  std::vector<uint32_t> same;
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) same.push_back(a);
  std::vector<RestoreForecast> forecasts;
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    const auto plan = PlanExchange({*saved, wanted, same, kBlock}, rank);
    EXPECT_TRUE(plan.ok());
    forecasts.push_back(ForecastOf(*plan, *saved, rank, file_bytes, kBlock));
  }
  return forecasts;
}

// A file of a header of 16 bytes and 20 elements of 8 bytes: three blocks, of 64, 64 and 48 bytes. Rank 0 wants elements 0 to 9, rank 1 10 to 19.
//   block 0: elements 0 to 5;   wanted by 0, who reads it
//   block 1: elements 6 to 13;  wanted by both, read by 1 (their second block), who hands 32 bytes to 0
//   block 2: elements 14 to 19; wanted by 1, who reads it
TEST(RestoreForecast, CountsWhatARankReadsHandsOnAndGets) {
  const std::vector<ArraySpec> arrays = {{"a", DType::kF64, false, {20}}};
  const SavedLayout saved{arrays, {{0, 0, 16, {{0}, {20}}}}};
  const Layout layout{2, arrays, {{0, 0, 0, {{0}, {10}}}, {0, 1, 0, {{10}, {10}}}}};
  const std::vector<RestoreForecast> ranks = ForecastAll(saved, layout, {176});
  EXPECT_EQ(ranks[0].state_bytes, 80U);
  EXPECT_EQ(ranks[0].blocks, 1U);
  EXPECT_EQ(ranks[0].read_bytes, 64U);
  EXPECT_EQ(ranks[0].needed_bytes, 48U);
  EXPECT_EQ(ranks[0].received_bytes, 32U);
  EXPECT_EQ(ranks[0].sent_bytes, 0U);
  EXPECT_EQ(ranks[0].buffer_bytes, 64U + 32U);
  EXPECT_THAT(ranks[0].read_of_file, ElementsAre(Pair(0, 64)));
  EXPECT_THAT(ranks[0].kept_from, ElementsAre(Pair(0, 48), Pair(1, 32)));
  EXPECT_EQ(ranks[1].state_bytes, 80U);
  EXPECT_EQ(ranks[1].blocks, 2U);
  EXPECT_EQ(ranks[1].read_bytes, 64U + 48U);
  EXPECT_EQ(ranks[1].needed_bytes, 64U + 48U);
  EXPECT_EQ(ranks[1].received_bytes, 0U);
  EXPECT_EQ(ranks[1].sent_bytes, 32U);
  EXPECT_EQ(ranks[1].buffer_bytes, 64U + 32U);
  EXPECT_THAT(ranks[1].read_of_file, ElementsAre(Pair(0, 112)));
  EXPECT_THAT(ranks[1].kept_from, ElementsAre(Pair(1, 80)));
}

// Blocks of 8 elements, read by ranks 0, 1 and 2; rank 1 gets 3 elements of the first and 2 of the last, each in a buffer of its own.
TEST(RestoreForecast, CountsABufferForEachSideFromWhichARankGetsSomething) {
  const std::vector<ArraySpec> arrays = {{"a", DType::kF64, false, {24}}};
  const SavedLayout saved{arrays, {{0, 0, 0, {{0}, {24}}}}};
  const Layout layout{3, arrays, {{0, 0, 0, {{0}, {5}}}, {0, 1, 0, {{5}, {13}}}, {0, 2, 0, {{18}, {6}}}}};
  const std::vector<RestoreForecast> ranks = ForecastAll(saved, layout, {192});
  EXPECT_THAT(ranks[1].kept_from, ElementsAre(Pair(0, 24), Pair(1, 64), Pair(2, 16)));
  EXPECT_EQ(ranks[1].buffer_bytes, 64U + 24U + 16U);
}

// Three replicas: the reader of a block sends to the next one, who passes it on.
TEST(RestoreForecast, CountsWhatIsPassedOn) {
  const std::vector<ArraySpec> arrays = {{"a", DType::kF64, false, {8}}};
  const SavedLayout saved{arrays, {{0, 0, 0, {{0}, {8}}}}};
  const Box whole{{0}, {8}};
  const Layout layout{3, arrays, {{0, 0, 0, whole}, {0, 1, 0, whole}, {0, 2, 0, whole}}};
  const std::vector<RestoreForecast> ranks = ForecastAll(saved, layout, {64});
  EXPECT_THAT(std::vector({ranks[0].sent_bytes, ranks[1].sent_bytes, ranks[2].sent_bytes}),
              ElementsAre(64, 64, 0));
  EXPECT_THAT(std::vector({ranks[0].received_bytes, ranks[1].received_bytes, ranks[2].received_bytes}),
              ElementsAre(0, 64, 64));
  EXPECT_THAT(ranks[2].kept_from, ElementsAre(Pair(0, 64)));
}

}  // namespace
}  // namespace cairn
