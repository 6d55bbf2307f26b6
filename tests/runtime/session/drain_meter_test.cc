#include "runtime/session/drain_meter.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(DrainMeter, AddsUpWhatTheRanksSayOfTheSaveUnderWay) {
  DrainMeter meter;
  meter.OnSeen(0, {.save_id = 4, .bytes = 1000, .written = 0, .bytes_per_second = 0, .writer = ""});
  meter.OnSeen(0, {.save_id = 4, .bytes = 1000, .written = 400, .bytes_per_second = 200, .writer = "pwrite"});
  meter.OnSeen(3,
               {.save_id = 4, .bytes = 3000, .written = 1000, .bytes_per_second = 250, .writer = "io_uring"});
  const auto reading = meter.Read(4);
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(reading->ranks, 2);
  EXPECT_EQ(reading->bytes, 4000u);
  EXPECT_EQ(reading->written, 1400u);
  EXPECT_DOUBLE_EQ(reading->bytes_per_second, 200 + 250);
  EXPECT_EQ(reading->left, std::chrono::seconds(8));  // rank 3: 2000 bytes at 250 a second
  EXPECT_EQ(reading->writer, "io_uring, pwrite");
}

TEST(DrainMeter, KnowsNoTimeLeftWhileARankHasWrittenNothing) {
  DrainMeter meter;
  meter.OnSeen(0, {.save_id = 1, .bytes = 10, .written = 10, .bytes_per_second = 10, .writer = "pwrite"});
  EXPECT_EQ(meter.Read(1)->left, std::chrono::seconds(0));
  EXPECT_EQ(meter.Read(1)->bytes_per_second, 0);
  meter.OnSeen(1, {.save_id = 1, .bytes = 10, .written = 0, .bytes_per_second = 0, .writer = ""});
  EXPECT_FALSE(meter.Read(1)->left.has_value());
}

TEST(DrainMeter, ForgetsAnOlderSave) {
  DrainMeter meter;
  meter.OnSeen(0, {.save_id = 1, .bytes = 10, .written = 1, .bytes_per_second = 10, .writer = "pwrite"});
  EXPECT_FALSE(meter.Read(2).has_value());
  meter.OnSeen(1, {.save_id = 2, .bytes = 20, .written = 2, .bytes_per_second = 10, .writer = "pwrite"});
  meter.OnSeen(0, {.save_id = 1, .bytes = 10, .written = 5, .bytes_per_second = 10, .writer = "pwrite"});
  EXPECT_FALSE(meter.Read(1).has_value());
  EXPECT_EQ(meter.Read(2)->bytes, 20u);
}

}  // namespace
}  // namespace cairn
