#include "runtime/catalog/marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kA = "step-000000000010.e1.00000001";
constexpr const char* kB = "step-000000000020.e1.00000002";

class Marks : public OnBothTiers {};
INSTANTIATE_TEST_SUITE_P(, Marks, ::testing::Bool(), TierName);

TEST_P(Marks, NameACheckpointAndCanBeMoved) {
  EXPECT_THAT(*ReadTags(run.dir()), IsEmpty());
  ASSERT_TRUE(SetTag(run.dir(), "best", kA).ok());
  ASSERT_TRUE(SetTag(run.dir(), "v1.0", kA).ok());
  ASSERT_TRUE(SetTag(run.dir(), "best", kB).ok());
  EXPECT_THAT(*ReadTags(run.dir()), ElementsAre(Pair("best", kB), Pair("v1.0", kA)));
  ASSERT_TRUE(RemoveTag(run.dir(), "best").ok());
  EXPECT_THAT(*ReadTags(run.dir()), ElementsAre(Pair("v1.0", kA)));
}

TEST(TagsAndPins, AreNotThereWhileTheyAreBeingWritten) {
  TestRun run;
  ASSERT_TRUE(SetTag(run.dir(), "best", kA).ok());
  ASSERT_TRUE(Pin(run.dir(), kA).ok());
  std::ofstream(run.Path("tags/.best.0123abcd")) << "{";
  std::ofstream(run.Path("pins/." + std::string(kB) + ".0123abcd")) << "{";
  EXPECT_THAT(*ReadTags(run.dir()), ElementsAre(Pair("best", kA)));
  EXPECT_THAT(*ReadPins(run.dir()), ElementsAre(kA));
}

TEST_P(Marks, ThatAreNoFileNamesAreRefused) {
  EXPECT_EQ(SetTag(run.dir(), "../RUN", kA).code(), Code::kInvalid);
  EXPECT_EQ(SetTag(run.dir(), "best", "latest").code(), Code::kInvalid);
  EXPECT_EQ(RemoveTag(run.dir(), "../RUN").code(), Code::kInvalid);
  EXPECT_TRUE(run.Has("RUN"));
}

TEST_P(Marks, HoldUntilTheyAreTakenAway) {
  ASSERT_TRUE(Pin(run.dir(), kA).ok());
  ASSERT_TRUE(Pin(run.dir(), kA).ok());
  ASSERT_TRUE(Pin(run.dir(), kB).ok());
  EXPECT_THAT(*ReadPins(run.dir()), ElementsAre(kA, kB));
  ASSERT_TRUE(Unpin(run.dir(), kA).ok());
  EXPECT_THAT(*ReadPins(run.dir()), ElementsAre(kB));
  EXPECT_EQ(Pin(run.dir(), "../x").code(), Code::kInvalid);
}

TEST(Finished, CountsWhileItsCheckpointIsTheNewest) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  EXPECT_FALSE(*IsFinished(run.dir(), run.List()));
  run.Save(epoch, 5);
  const std::string last = run.Save(epoch, 10);
  ASSERT_TRUE(WriteFinished(run.dir(), last).ok());
  EXPECT_TRUE(*IsFinished(run.dir(), run.List()));
  const uint32_t again = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), again, "").ok());  // started over
  EXPECT_FALSE(*IsFinished(run.dir(), run.List()));
}

}  // namespace
}  // namespace cairn
