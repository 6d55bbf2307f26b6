#include "runtime/interop/name_map.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(NameMap, TakesTheFirstMemberThatFits) {
  const auto map = NameMap::Parse(
      R"({"model.head": "lm_head", "model.*.weight": "*.w", "model.*": "*", "optim.*": null})");
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->Map("model.head"), "lm_head");
  EXPECT_EQ(map->Map("model.layers.0.weight"), "layers.0.w");
  EXPECT_EQ(map->Map("model.layers.0.bias"), "layers.0.bias");
  EXPECT_EQ(map->Map("optim.step"), std::nullopt);
  EXPECT_EQ(map->Map("other"), "other");
  EXPECT_EQ(map->Map("model.weight"), "weight");  // "model." and ".weight" would overlap in it
}

TEST(NameMap, RefusesWhatIsNoMapOfNames) {
  for (const char* text : {"", "[]", R"({"a": 1})", R"({"a*b*": "c"})", R"({"a": "*"})"}) {
    const auto map = NameMap::Parse(text);
    ASSERT_FALSE(map.ok()) << text;
    EXPECT_EQ(map.status().code(), Code::kInvalid);
  }
}

TEST(NameMap, RefusesTwoArraysOfOneNewName) {
  const auto map = NameMap::Parse(R"({"a.*": "*", "b.*": "*"})");
  const auto named = ApplyNames(*map, {{"a.w", DType::kF32, false, {1}}, {"b.w", DType::kF32, false, {1}}});
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.status().message(), R"("a.w" and "b.w" would both be called "w")");
}

TEST(NameMap, RefusesToLeaveOutEverything) {
  const auto map = NameMap::Parse(R"({"*": null})");
  EXPECT_EQ(ApplyNames(*map, {{"a", DType::kF32, false, {1}}}).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
