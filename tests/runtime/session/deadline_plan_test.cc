#include "runtime/session/deadline_plan.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using Decision = DeadlinePlan::Decision;
using UnderWay = DeadlineFacts::UnderWay;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// 38 GB: two steps of 500 ms, 1 s of stall and 10 s of writing = 12 s.
constexpr SaveTimes kTimes{38000000000, milliseconds(500), seconds(1), seconds(10)};

DeadlineFacts Facts(std::chrono::seconds left, UnderWay under_way = UnderWay::kNothing,
                    std::chrono::seconds written = seconds(0)) {
  return {left, kTimes, under_way, 1300, written, 1200};
}

TEST(DeadlinePlan, DecidesFromTheTimeLeftAndWhatIsUnderWay) {
  const struct {
    int left;
    UnderWay under_way;
    int written;
    Decision decision;
    const char* line;
  } rows[] = {
      {60, UnderWay::kNothing, 0, Decision::kSave,
       "1 m 0 s left: a new save is durable, 38.0 GB in about 12.0 s, 48.0 s to spare"},
      {12, UnderWay::kNothing, 0, Decision::kSave,
       "12.0 s left: a new save is durable, 38.0 GB in about 12.0 s, nothing to spare"},
      {9, UnderWay::kNothing, 0, Decision::kSave,
       "9.0 s left: a new save is tried, though it takes 38.0 GB in about 12.0 s, 3.0 s too long; else step "
       "1200, "
       "which is durable, stands"},
      {5, UnderWay::kNothing, 0, Decision::kKeep,
       "5.0 s left: steps take 500 ms, so no boundary is expected in time; step 1200, which is durable, "
       "stands "
       "unless one comes sooner"},
      {30, UnderWay::kWriting, 4, Decision::kFinishThenSave,
       "30.0 s left: step 1300, whose save is under way, is durable in about 6.0 s, then a newer one in "
       "about 18.0 "
       "s, 12.0 s to spare"},
      {15, UnderWay::kWriting, 4, Decision::kFinish,
       "15.0 s left: step 1300, whose save is under way, is durable in about 6.0 s, 9.0 s to spare; a newer "
       "one, "
       "about 12.0 s, does not fit after it"},
      {5, UnderWay::kWriting, 4, Decision::kFinish,
       "5.0 s left: step 1300, whose save is under way, is durable in about 6.0 s, 1.0 s too long; a newer "
       "one, "
       "about 12.0 s, does not fit after it"},
      // Slower than the last one: it may end at any moment.
      {15, UnderWay::kWriting, 14, Decision::kFinishThenSave,
       "15.0 s left: step 1300, whose save is under way, is durable at any moment, then a newer one in "
       "about 12.0 "
       "s, 3.0 s to spare"},
      {21, UnderWay::kBoundary, 0, Decision::kFinish,
       "21.0 s left: step 1300, whose save is under way, is durable in about 12.0 s, 9.0 s to spare; a newer "
       "one, "
       "about 12.0 s, does not fit after it"},
      {25, UnderWay::kBoundary, 0, Decision::kFinishThenSave,
       "25.0 s left: step 1300, whose save is under way, is durable in about 12.0 s, then a newer one in "
       "about 24.0 "
       "s, 1.0 s to spare"},
  };
  for (const auto& row : rows) {
    const DeadlinePlan plan = PlanDeadline(Facts(seconds(row.left), row.under_way, seconds(row.written)));
    EXPECT_EQ(plan.line, row.line);
    EXPECT_EQ(plan.decision, row.decision) << row.line;
  }
}

TEST(DeadlinePlan, AProgramInALongStepKeepsTheNewestDurableStep) {
  DeadlineFacts facts = Facts(seconds(58));
  facts.times.step = minutes(5);
  EXPECT_EQ(PlanDeadline(facts).decision, Decision::kKeep);
  EXPECT_EQ(
      PlanDeadline(facts).line,
      "58.0 s left: steps take 5 m 0 s, so no boundary is expected in time; step 1200, which is durable, "
      "stands unless one comes sooner");
  facts.durable.reset();
  EXPECT_EQ(PlanDeadline(facts).line,
            "58.0 s left: steps take 5 m 0 s, so no boundary is expected in time; there is no checkpoint "
            "unless one "
            "comes sooner");
  facts.under_way = UnderWay::kWriting;  // its snapshot is there already
  EXPECT_EQ(PlanDeadline(facts).decision, Decision::kFinish);
}

// The last save took 40 s under a limit, and would have taken 10 s without: what took 20 s so far would have taken 5 s.
TEST(DeadlinePlan, CountsWhatWasWrittenUnderALimitAsInAHurry) {
  DeadlineFacts facts = Facts(seconds(30), UnderWay::kWriting);
  facts.written = HurriedPart(seconds(20), seconds(40), kTimes.write_time);
  EXPECT_EQ(facts.written, seconds(5));
  EXPECT_EQ(
      PlanDeadline(facts).line,
      "30.0 s left: step 1300, whose save is under way, is durable in about 5.0 s, then a newer one in about "
      "17.0 s, 13.0 s to spare");
  EXPECT_EQ(HurriedPart(seconds(7), seconds(10), seconds(10)), seconds(7));
  EXPECT_EQ(HurriedPart(seconds(7), std::nullopt, std::nullopt), seconds(7));
}

TEST(DeadlinePlan, SaysNothingOfTimesThatWereNotMeasured) {
  DeadlineFacts facts{.left = seconds(30)};
  EXPECT_EQ(PlanDeadline(facts).line, "30.0 s left: a new save; how long it takes was not measured yet");
  facts.under_way = UnderWay::kWriting;
  facts.boundary = 7;
  EXPECT_EQ(PlanDeadline(facts).decision, Decision::kFinishThenSave);
  EXPECT_EQ(
      PlanDeadline(facts).line,
      "30.0 s left: step 7, whose save is under way, is finished first, then a new save; how long it takes "
      "was not measured yet");
}

TEST(Fit, ComparesWhatAPreemptionLeavesWithWhatASaveTakes) {
  const Fit fits = FitOf(seconds(60), kTimes, minutes(7));
  EXPECT_EQ(fits.kind, Fit::Class::kFits);
  EXPECT_EQ(
      fits.line,
      "a preemption leaves 1 m 0 s: 38.0 GB durable in about 12.0 s, so nothing is lost, 48.0 s to spare");
  const Fit too_long = FitOf(seconds(10), kTimes, minutes(7));
  EXPECT_EQ(too_long.kind, Fit::Class::kTooLong);
  EXPECT_EQ(too_long.line,
            "a preemption leaves 10.0 s: 38.0 GB durable in about 12.0 s, which is too long, so up to about "
            "7 m 12 s "
            "of work would be lost");
  EXPECT_EQ(FitOf(seconds(10), kTimes, std::nullopt).line,
            "a preemption leaves 10.0 s: 38.0 GB durable in about 12.0 s, which is too long, so the steps "
            "since the "
            "newest checkpoint would be lost");
  const Fit unknown = FitOf(seconds(60), {}, minutes(7));
  EXPECT_EQ(unknown.kind, Fit::Class::kNotMeasured);
  EXPECT_EQ(unknown.line,
            "a preemption leaves 1 m 0 s: what that is enough for is known after the first save");
}

}  // namespace
}  // namespace cairn
