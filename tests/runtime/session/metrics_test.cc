#include "runtime/session/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cairn {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, ComeBackAsTheyWereGivenLast) {
  Metrics metrics;
  ASSERT_TRUE(metrics.Set("val/loss", {0.5, 100}).ok());
  ASSERT_TRUE(metrics.Set("accuracy", {-INFINITY, 110}).ok());
  ASSERT_TRUE(metrics.Set("val/loss", {0.1, 120}).ok());
  EXPECT_EQ(*DecodeMetrics(*metrics.bytes()),
            (MetricValues{{"accuracy", {-INFINITY, 110}}, {"val/loss", {0.1, 120}}}));
}

TEST(Metrics, LeaveWhatIsHeldAsItWas) {
  Metrics metrics;
  ASSERT_TRUE(metrics.Set("loss", {0.5, 100}).ok());
  const auto held = metrics.bytes();
  ASSERT_TRUE(metrics.Set("loss", {0.4, 200}).ok());
  EXPECT_EQ(*DecodeMetrics(*held), (MetricValues{{"loss", {0.5, 100}}}));
}

TEST(Metrics, RefuseANameThatTheRetentionRulesCouldNotName) {
  Metrics metrics;
  for (const std::string& name : {std::string(), std::string("a,b"), std::string("a:b"), std::string("a b"),
                                  std::string("a\nb"), std::string("é"), std::string(101, 'x')})
    EXPECT_EQ(metrics.Set(name, {1, 1}).code(), Code::kInvalid) << name;
  EXPECT_EQ(*metrics.bytes(), "");
}

TEST(Metrics, RefuseTheOneThatIsTooMany) {
  Metrics metrics;
  // 1 + 100 + 16 bytes each: 35 fit 4096.
  for (char c = '0'; c < '0' + 35; ++c)
    ASSERT_TRUE(metrics.Set(std::string(99, 'x') + (c == ':' ? '~' : c), {1, 1}).ok()) << c;
  const auto before = metrics.bytes();
  const Status status = metrics.Set(std::string(100, 'y'), {1, 1});
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("4212 bytes, and 4096 are possible"));
  EXPECT_EQ(metrics.bytes(), before);
}

TEST(MergeMetrics, KeepsTheLatestValuesElseTheLowestRanksAndABoundedNumberOfNames) {
  MetricValues all;
  for (int i = 0; i < 9'999; ++i) all["m" + std::to_string(i)] = {0, 1};
  std::set<std::string> left_out;
  MergeMetrics({{"m4", {2, 0}}, {"m5", {2, 1}}, {"m7", {2, 2}}, {"n", {3, 3}}}, &all, &left_out);
  EXPECT_TRUE(left_out.empty());
  EXPECT_EQ(all.at("m4"), (Manifest::Metric{0, 1}));
  EXPECT_EQ(all.at("m5"), (Manifest::Metric{0, 1}));
  EXPECT_EQ(all.at("m7"), (Manifest::Metric{2, 2}));
  EXPECT_EQ(all.at("n"), (Manifest::Metric{3, 3}));
  for (int rank = 0; rank < 2; ++rank)
    MergeMetrics({{"m6", {2, 2}}, {"o", {4, 4}}, {"p", {5, 5}}}, &all, &left_out);
  EXPECT_EQ(left_out, (std::set<std::string>{"o", "p"}));
  EXPECT_EQ(all.size(), 10'000u);
  EXPECT_FALSE(all.contains("o"));
}

TEST(DecodeMetrics, TakesNoOtherBytes) {
  Metrics metrics;
  ASSERT_TRUE(metrics.Set("loss", {0.5, 100}).ok());
  const std::string good = *metrics.bytes();
  for (size_t n = 1; n < good.size(); ++n) EXPECT_FALSE(DecodeMetrics(good.substr(0, n)).ok()) << n;
  EXPECT_FALSE(DecodeMetrics(good + "x").ok());
  std::string negative = good;
  negative.back() = '\xff';
  EXPECT_FALSE(DecodeMetrics(negative).ok());
  EXPECT_TRUE(DecodeMetrics("")->empty());
}

}  // namespace
}  // namespace cairn
