#include "runtime/session/name_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

TEST(NamePattern, AStarStandsForAnyCharactersAndForNone) {
  EXPECT_TRUE(MatchesPattern("model.*", "model.layers.0.weight"));
  EXPECT_TRUE(MatchesPattern("model.*", "model."));
  EXPECT_FALSE(MatchesPattern("model.*", "model"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*.weight", "a.weight"));
  EXPECT_FALSE(MatchesPattern("*.weight", "a.weight.exp_avg"));
  EXPECT_TRUE(MatchesPattern("a*b*c", "abbc"));
  EXPECT_FALSE(MatchesPattern("a*ba", "aba."));
  EXPECT_FALSE(MatchesPattern("ab*ba", "aba"));  // the parts may not overlap
}

TEST(NamePattern, WithoutAStarOnlyTheNameItselfMatches) {
  EXPECT_TRUE(MatchesPattern("u", "u"));
  EXPECT_FALSE(MatchesPattern("u", "uu"));
  EXPECT_FALSE(MatchesPattern("u", ""));
}

TEST(NamePattern, RenamesByWhatTheStarsStoodFor) {
  EXPECT_EQ(RenameByPattern("net.*.w", "model.*.weight", "net.3.w"), "model.3.weight");
  EXPECT_EQ(RenameByPattern("module.*", "*", "module.a.b"), "a.b");
  EXPECT_EQ(RenameByPattern("*.*", "*/*", "a.b.c"), "a/b.c");  // the first as short as possible
  EXPECT_EQ(RenameByPattern("*.old", "new", "x.old"), "new");
  EXPECT_EQ(RenameByPattern("u", "v", "u"), "v");
  EXPECT_EQ(RenameByPattern("net.*", "model.*", "model.3"), std::nullopt);
}

}  // namespace
}  // namespace cairn
