#include "runtime/session/deadline_watch.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using std::chrono::seconds;

constexpr DeadlineWatch::TimePoint kStart{seconds(1000)};

TEST(DeadlineWatch, AsksTheNoticeBeforeTheLimitAndFollowsANoticeThatGrows) {
  DeadlineWatch watch;
  EXPECT_EQ(watch.next(seconds(20)), std::nullopt);
  watch.OnAnswer(600, kStart);
  EXPECT_EQ(watch.next(seconds(20)), kStart + seconds(580));
  EXPECT_EQ(watch.next(seconds(110)), kStart + seconds(490));
}

TEST(DeadlineWatch, NeverAsksAgainWithoutALimit) {
  DeadlineWatch watch;
  watch.OnAnswer(600, kStart);
  watch.OnAnswer(std::nullopt, kStart);
  EXPECT_EQ(watch.next(seconds(20)), std::nullopt);
}

TEST(DeadlineWatch, AsksAgainUntilSlurmAnswersAndSaysItOnce) {
  DeadlineWatch watch;
  EXPECT_TRUE(watch.OnSilence(kStart));
  EXPECT_EQ(watch.next(seconds(20)), kStart + seconds(30));
  EXPECT_FALSE(watch.OnSilence(kStart + seconds(30)));
  EXPECT_EQ(watch.next(seconds(20)), kStart + seconds(60));
  watch.OnAnswer(600, kStart + seconds(60));
  EXPECT_EQ(watch.next(seconds(20)), kStart + seconds(640));
  EXPECT_TRUE(watch.OnSilence(kStart + seconds(640)));
}

TEST(DeadlineWatch, AsksSoonerWhenTheLimitIsKnownToBeNear) {
  DeadlineWatch watch;
  watch.OnAnswer(600, kStart);
  (void)watch.OnSilence(kStart + seconds(580));
  EXPECT_EQ(watch.next(seconds(20)), kStart + seconds(585));
}

}  // namespace
}  // namespace cairn
