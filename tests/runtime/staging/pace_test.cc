#include "runtime/staging/pace.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Pace::TimePoint kStart = Pace::TimePoint() + std::chrono::hours(5);

TEST(Pace, LetsEachWriteBeginWhenTheOnesBeforeArePaidFor) {
  Pace pace(1000);
  // A tenth of a second was saved up before the first one.
  EXPECT_EQ(pace.Take(1100, kStart), kStart);
  EXPECT_EQ(pace.Take(500, kStart), kStart + seconds(1));
  EXPECT_EQ(pace.Take(250, kStart + milliseconds(1400)), kStart + milliseconds(1500));
  EXPECT_EQ(pace.Take(1, kStart + milliseconds(1750)), kStart + milliseconds(1750));
}

TEST(Pace, SavesNoMoreThanATenthOfASecond) {
  Pace pace(1000);
  EXPECT_EQ(pace.Take(1000, kStart), kStart);
  const auto later = kStart + std::chrono::hours(1);
  EXPECT_EQ(pace.Take(100, later), later);  // what was saved
  EXPECT_EQ(pace.Take(100, later), later);
  EXPECT_EQ(pace.Take(100, later), later + milliseconds(100));
}

TEST(Pace, MakesUpForSleepsThatAreTooLong) {
  Pace pace(1 << 20);
  auto now = kStart;
  for (int i = 0; i < 1000; ++i) now = pace.Take(64 << 10, now) + milliseconds(20);  // each 20 ms late
  // 62.5 ms a write, not 82.5.
  EXPECT_LT(now - kStart, milliseconds(62700));
}

TEST(Pace, OfNoLimitNeverWaits) {
  Pace pace(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pace.Take(uint64_t{1} << 40, kStart), kStart);
}

TEST(Pace, OfOneBytePerSecondStillCounts) {
  Pace pace(1);
  EXPECT_EQ(pace.Take(4 << 20, kStart), kStart);
  EXPECT_EQ(pace.Take(1, kStart), kStart + seconds(4 << 20) - milliseconds(100));
}

}  // namespace
}  // namespace cairn
