#include "runtime/s3/read_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "runtime/s3/s3_upload.h"

namespace cairn {
namespace {

// Carries a plan out against an object whose bytes tell their offset.
void Fetch(const std::vector<PlannedRead>& plan) {
  for (const PlannedRead& read : plan) {
    uint64_t at = read.offset;
    for (const HttpPiece& piece : read.into) {
      for (size_t i = 0; i < piece.bytes; ++i, ++at) {
        if (piece.to != nullptr) piece.to[i] = static_cast<std::byte>(at % 251);
      }
    }
    EXPECT_EQ(at, read.offset + read.bytes);
  }
}

TEST(PlanReads, JoinsNeighboursAndReadsOverSmallGaps) {
  std::byte memory[100];
  const ObjectRange ranges[] = {{50, {memory, 10}},
                                {0, {memory + 10, 10}},
                                {13, {memory + 20, 5}},
                                {60, {memory + 30, 5}},
                                {30, {memory + 40, 0}}};
  const auto plan = PlanReads(ranges, 3, 100);
  ASSERT_EQ(plan.size(), 2);
  EXPECT_EQ(plan[0].offset, 0);
  EXPECT_EQ(plan[0].bytes, 18);  // 10, a gap of 3, 5
  EXPECT_EQ(plan[1].offset, 50);
  EXPECT_EQ(plan[1].bytes, 15);
}

TEST(PlanReads, GivesEachRangeItsBytesWhateverTheyAre) {
  std::mt19937 random(7);
  const auto below = [&](unsigned n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<std::byte>> memory(below(8));
    std::vector<ObjectRange> ranges;
    for (auto& to : memory) {
      to.resize(below(40));
      ranges.push_back({below(200), to});
    }
    const uint64_t gap = below(6), longest = 1 + below(30);
    const auto plan = PlanReads(ranges, gap, longest);
    for (const PlannedRead& read : plan) {
      EXPECT_GT(read.bytes, 0);
      EXPECT_LE(read.bytes, longest);
    }
    Fetch(plan);
    for (const ObjectRange& range : ranges) {
      for (size_t i = 0; i < range.to.size(); ++i)
        ASSERT_EQ(range.to[i], static_cast<std::byte>((range.offset + i) % 251)) << "round " << round;
    }
  }
}

TEST(PartBytes, MakesNoMoreThanTenThousandParts) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(PartBytes(1, 8 * kMiB), 8 * kMiB);
  EXPECT_EQ(PartBytes(80000 * kMiB, 8 * kMiB), 8 * kMiB);
  EXPECT_EQ(PartBytes(80000 * kMiB + 1, 8 * kMiB), 9 * kMiB);
  EXPECT_EQ(PartBytes(5 * kMiB * kMiB, 8 * kMiB), 525 * kMiB);  // 5 TiB, the largest object there is
}

}  // namespace
}  // namespace cairn
