#include "runtime/catalog/target.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/temp_dir.h"

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

}  // namespace
}  // namespace cairn
