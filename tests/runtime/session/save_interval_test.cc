#include "runtime/session/save_interval.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using agreement::Progress;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

SaveCosts::TimePoint At(int64_t ms) { return SaveCosts::TimePoint(milliseconds(ms)); }

// Steps of 100 ms; the one save takes 2 s to write, in which only 15 steps are made instead of 20; its copy stalls for 40 ms.
SaveCosts Measured() {
  SaveCosts costs;
  costs.OnIdle(0, At(0));
  costs.OnBegun(100, At(10000));
  costs.OnStaged(102, At(10300));
  costs.OnSaved(117, At(12300), milliseconds(40));
  return costs;
}

TEST(SaveCosts, ASaveCostsItsStallAndTheTimeByWhichStepsWereSlowerWhileItWasWritten) {
  const SaveCosts costs = Measured();
  EXPECT_EQ(costs.stall(), milliseconds(40));
  EXPECT_EQ(costs.slow_down(), milliseconds(500));
  EXPECT_EQ(costs.cost(), milliseconds(540));
}

TEST(SaveCosts, IsTheMeanOfAllSaves) {
  SaveCosts costs = Measured();
  costs.OnIdle(117, At(12300));
  costs.OnBegun(217, At(22300));
  costs.OnStaged(219, At(22500));
  costs.OnSaved(229, At(23500), milliseconds(20));  // 10 steps in 1 s: not slower at all
  EXPECT_EQ(costs.stall(), milliseconds(30));
  EXPECT_EQ(costs.slow_down(), milliseconds(250));
}

TEST(SaveCosts, StepsThatAreTooLongToMeasureInSayNothing) {
  SaveCosts costs;
  costs.OnIdle(0, At(0));
  costs.OnBegun(100, At(1000000));
  costs.OnStaged(102, At(1020000));
  costs.OnSaved(102, At(1025000), milliseconds(40));
  EXPECT_EQ(costs.slow_down(), std::nullopt);
  EXPECT_EQ(costs.cost(), milliseconds(40));
}

TEST(SaveCosts, WhatWasDroppedDoesNotCount) {
  SaveCosts costs = Measured();
  costs.OnIdle(117, At(12300));
  costs.OnBegun(217, At(22300));
  costs.OnStaged(219, At(22500));
  costs.OnIdle(219, At(92500));
  EXPECT_EQ(costs.saves(), 1);
  EXPECT_EQ(costs.slow_down(), milliseconds(500));
}

TEST(SaveCosts, StepsThatAreFasterMeanwhileCostNothing) {
  SaveCosts costs;
  costs.OnIdle(0, At(0));
  costs.OnBegun(100, At(10000));
  costs.OnStaged(102, At(10300));
  costs.OnSaved(132, At(12300), milliseconds(40));
  EXPECT_EQ(costs.slow_down(), milliseconds(0));
}

TEST(DalyInterval, IsTheOneOfThePaper) {
  // sqrt(2·60·86400) = 3219.938 s; × (1 + sqrt(60/172800)/3 + 60/1555200) = 3240.060 s; - 60 s
  EXPECT_NEAR(std::chrono::duration<double>(DalyInterval(seconds(60), hours(24))).count(), 3180.06, 0.01);
  // sqrt(2·0.54·86400) = 305.470 s; × (1 + sqrt(0.54/172800)/3 + …) = 305.650 s; - 0.54 s
  EXPECT_NEAR(std::chrono::duration<double>(DalyInterval(milliseconds(540), hours(24))).count(), 305.11,
              0.01);
}

TEST(DalyInterval, NeverExceedsTheTimeBetweenFailures) {
  EXPECT_EQ(DalyInterval(hours(2), hours(1)), hours(1));
  EXPECT_EQ(DalyInterval(hours(9), hours(1)), hours(1));
}

Settings Auto() {
  Settings settings;
  settings.interval_auto = true;
  settings.mtbf = hours(24);
  return settings;
}

TEST(SaveInterval, AutoBeginsWithFiveMinutesAndFollowsTheMeasuredCost) {
  const Settings settings = Auto();
  SaveInterval interval(settings);
  EXPECT_EQ(interval.Wait({}), minutes(5));
  EXPECT_EQ(interval.Describe(), "every 5 m 0 s (auto: no save was measured yet)");
  interval.Learn(Measured(), seconds(2));
  EXPECT_EQ(duration_cast<seconds>(*interval.Wait({})), seconds(305));
  EXPECT_EQ(interval.Describe(),
            "every 5 m 5 s (auto: a save costs 540 ms; mean time between failures 1 d 0 h)");
}

TEST(SaveInterval, AutoFollowsTheMeanTimeBetweenFailures) {
  Settings settings = Auto();
  settings.mtbf = hours(6);
  SaveInterval interval(settings);
  interval.Learn(Measured(), seconds(2));
  EXPECT_EQ(duration_cast<seconds>(*interval.Wait({})), seconds(152));  // sqrt(2·0.54·21600) = 152.7 s
}

TEST(SaveInterval, AutoStaysWithinItsBoundsAndAboveTheTimeThatWritingTakes) {
  Settings settings = Auto();
  SaveInterval interval(settings);
  SaveCosts cheap;
  cheap.OnSaved(1, At(0), milliseconds(1));
  interval.Learn(cheap, seconds(2));
  EXPECT_EQ(interval.Wait({}), minutes(1));
  interval.Learn(cheap, minutes(3));
  EXPECT_EQ(interval.Wait({}), minutes(3));
  settings.mtbf = hours(24 * 365);
  interval.Learn(Measured(), seconds(2));
  EXPECT_EQ(duration_cast<seconds>(*interval.Wait({})), seconds(5835));  // sqrt(2·0.54·31536000) = 5836.0 s
  SaveCosts dear;
  dear.OnSaved(1, At(0), minutes(5));
  interval.Learn(dear, seconds(2));
  EXPECT_EQ(interval.Wait({}), hours(4));
}

TEST(SaveInterval, StepsAreDueAsManyBoundariesAheadAsTheAgreementNeeds) {
  Settings settings;
  settings.interval_steps = 100;
  SaveInterval interval(settings);
  interval.Start(250);
  EXPECT_FALSE(interval.Due({347, milliseconds(10)}));
  EXPECT_TRUE(interval.Due({348, milliseconds(10)}));
  EXPECT_FALSE(interval.Due({349, milliseconds(10)}));
  EXPECT_TRUE(interval.Due({448, milliseconds(10)}));
  EXPECT_EQ(interval.Every({448, milliseconds(10)}), seconds(1));
  EXPECT_EQ(interval.Describe(), "every 100 steps");
}

TEST(SaveInterval, IsNeverWhereTheUserLeavesItOut) {
  Settings settings = Auto();
  settings.on = kTriggerPreempt;
  SaveInterval interval(settings);
  EXPECT_EQ(interval.Wait({}), std::nullopt);
  EXPECT_EQ(interval.Every({}), std::nullopt);
  EXPECT_EQ(interval.Describe(), "never");
}

}  // namespace
}  // namespace cairn
