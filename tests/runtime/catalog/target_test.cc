#include "runtime/catalog/target.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/catalog/epoch.h"
#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

TEST(ParseTarget, CutsAtTheLastAtSignOfTheLastName) {
  const TempDir tmp;
  const std::string dir = tmp / "me@lab";
  EXPECT_EQ(*ParseTarget(dir + "/run"), (Target{dir + "/run", ""}));  // which is not there
  EXPECT_EQ(*ParseTarget(dir + "/run@7"), (Target{dir + "/run", "7"}));
  EXPECT_EQ(*ParseTarget(dir + "/run@x@best"), (Target{dir + "/run@x", "best"}));
  std::filesystem::create_directory(tmp / "run@x");
  EXPECT_EQ(*ParseTarget(tmp / "run@x"), (Target{tmp / "run@x", ""}));
  EXPECT_EQ(*ParseTarget(tmp / "run@x@3"), (Target{tmp / "run@x", "3"}));
  EXPECT_EQ(*ParseTarget("me@lab/run@best:val/loss:min"), (Target{"me@lab/run", "best:val/loss:min"}));
  EXPECT_EQ(ParseTarget("run@").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseTarget("@3").status().code(), Code::kInvalid);
}

TEST(ChooseCheckpoint, TakesOfAStepTheOneOnTheLineBeforeANewerOrphan) {
  TestRun run;
  const uint32_t first = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), first, "").ok());
  const std::string start = run.Save(first, 10), on_the_line = run.Save(first, 20);
  const uint32_t left = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), left, start).ok());
  const std::string orphan = run.Save(left, 20, start);
  ASSERT_TRUE(PublishParent(run.dir(), run.Claim(), on_the_line).ok());
  EXPECT_EQ(run.List().checkpoints.front().name, orphan);
  const auto chosen = ChooseCheckpoint(run.dir().path() + "@20");
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->checkpoint.name, on_the_line);
}

}  // namespace
}  // namespace cairn
