#include "runtime/session/read_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "u" of four ranks: the first two have a half of the rows each, in two pieces that overlap in a column; the third all of it twice, the last nothing.
State Registered() {
  State state;
  state.layout.world_size = 4;
  state.layout.arrays = {{"u", DType::kF64, false, {4, 6}}, {"rows", DType::kU8, false, {8, 2}}};
  state.layout.pieces = {{0, 0, 0, {{0, 0}, {2, 4}}}, {0, 0, 1, {{0, 3}, {2, 3}}},
                         {0, 1, 0, {{2, 0}, {2, 4}}}, {0, 1, 1, {{2, 3}, {2, 3}}},
                         {0, 2, 0, {{0, 0}, {4, 6}}}, {0, 2, 1, {{0, 0}, {4, 6}}}};
  state.layout.grids.rule_of = {kNoRule, kNoRule};
  state.tables = {"rows"};
  return state;
}

const std::vector<ArraySpec> kSaved = {{"old", DType::kF64, false, {4, 6}},
                                       {"turned", DType::kF64, true, {6, 4}},  // (4, 6) in Fortran order
                                       {"u", DType::kF64, false, {4, 6}},
                                       {"half", DType::kF16, false, {4, 6}}};

std::vector<std::string> Described(const ReadPlan& plan) {
  std::vector<std::string> out;
  for (const ReadItem& item : plan) {
    out.push_back(std::to_string(item.from) + item.box.ToString() + " to " + std::to_string(item.piece) +
                  item.to_offset.ToString());
  }
  return out;
}

std::string Refusal(const ReadItem& item) {
  const auto joined = JoinPlans({{}, {item}, {}, {}}, kSaved, Registered());
  EXPECT_EQ(joined.status().code(), Code::kInvalid);
  return joined.status().message();
}

TEST(ReadPlan, TheDefaultIsEachPieceInFull) {
  EXPECT_THAT(Described(DefaultPlan(kSaved, Registered(), {}, 1)),
              ElementsAre("2[2:4, 0:4] to 0[2, 0]", "2[2:4, 3:6] to 0[2, 3]"));
  EXPECT_THAT(DefaultPlan(kSaved, Registered(), {}, 3), IsEmpty());
}

TEST(ReadPlan, TheDefaultFollowsRenamesAndLeavesOutWhatDiffers) {
  const std::vector<ItemDifference> renamed = {{ItemDifference::kRenamed, "u", "old"}};
  EXPECT_THAT(Described(DefaultPlan(kSaved, Registered(), renamed, 0)),
              ElementsAre("0[0:2, 0:4] to 0[0, 0]", "0[0:2, 3:6] to 0[0, 3]"));
  EXPECT_THAT(DefaultPlan(kSaved, Registered(), {{ItemDifference::kLeft, "u", ""}}, 0), IsEmpty());
  EXPECT_THAT(DefaultPlan(kSaved, Registered(), {{ItemDifference::kRenamed, "u", "half"}}, 0), IsEmpty());
}

TEST(ReadPlan, ItemsAreCutWhereThePiecesEnd) {
  const ReadItem row{.from = 0, .box = {{3, 0}, {1, 6}}, .to = 0, .to_offset = {1, 0}};
  const auto joined = JoinPlans({{row}, {}, {}, {}}, kSaved, Registered());
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_THAT(Described(joined->plans[0]), ElementsAre("0[3:4, 0:4] to 0[1, 0]", "0[3:4, 3:6] to 1[1, 3]"));
}

// Element (i, j) of the one is element (i, j) of the other.
TEST(ReadPlan, ATurnedArrayIsCutInItsOwnDimensions) {
  const ReadItem row{.from = 1, .box = {{0, 3}, {6, 1}}, .to = 0, .to_offset = {1, 0}};
  const auto joined = JoinPlans({{row}, {}, {}, {}}, kSaved, Registered());
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_THAT(Described(joined->plans[0]), ElementsAre("1[0:4, 3:4] to 0[1, 0]", "1[3:6, 3:4] to 1[1, 3]"));
  EXPECT_EQ(TargetOf(row, kSaved[1], Registered().layout.arrays[0]).ToString(), "[1:2, 0:6]");
}

TEST(ReadPlan, EveryPieceThatHoldsAnElementGetsItOnce) {
  const State state = Registered();
  const auto joined = JoinPlans({{}, {}, DefaultPlan(kSaved, state, {}, 2), {}}, kSaved, state);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_THAT(Described(joined->plans[2]), ElementsAre("2[0:4, 0:6] to 0[0, 0]", "2[0:4, 0:6] to 1[0, 0]"));
}

// Column 3 lies in both of this rank's pieces.
TEST(ReadPlan, TheDefaultFillsPiecesThatOverlapOnce) {
  const State state = Registered();
  const auto joined = JoinPlans({{}, DefaultPlan(kSaved, state, {}, 1), {}, {}}, kSaved, state);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_THAT(Described(joined->plans[1]),
              ElementsAre("2[2:4, 0:4] to 0[2, 0]", "2[2:4, 3:4] to 1[2, 3]", "2[2:4, 4:6] to 1[2, 4]"));
}

TEST(ReadPlan, WhatSeveralItemsBringAlikeIsReadOnce) {
  const ReadItem row{.from = 1, .box = {{0, 3}, {6, 1}}, .to = 0, .to_offset = {1, 0}};
  const ReadItem middle{.from = 1, .box = {{2, 3}, {2, 1}}, .to = 0, .to_offset = {1, 2}};
  const auto joined = JoinPlans({{middle, row}, {}, {}, {}}, kSaved, Registered());
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_THAT(Described(joined->plans[0]), ElementsAre("1[2:4, 3:4] to 0[1, 2]", "1[0:2, 3:4] to 0[1, 0]",
                                                       "1[3:4, 3:4] to 1[1, 3]", "1[4:6, 3:4] to 1[1, 4]"));
}

TEST(ReadPlan, RefusesTwoThingsInOnePlace) {
  const ReadItem rows{.from = 0, .box = {{0, 0}, {2, 6}}, .to = 0, .to_offset = {2, 0}};
  const ReadItem nothing{.from = 0, .box = {{0, 0}, {0, 6}}, .to = 0, .to_offset = {2, 0}};
  ReadItem corner{.from = 2, .box = {{0, 0}, {1, 1}}, .to = 0, .to_offset = {3, 5}};
  const auto refusal = [&] {
    return JoinPlans({{}, {rows, nothing, corner}, {}, {}}, kSaved, Registered()).status().message();
  };
  const std::string refused =
      "the load plan of rank 1, item 2: brings something into [3:4, 5:6] of \"u\", where item 0 brings "
      "something else";
  EXPECT_EQ(refusal(), refused);
  corner.from = 0;  // from elsewhere in the same array
  EXPECT_EQ(refusal(), refused);
  corner.box.offset = {1, 5};
  EXPECT_EQ(refusal(), "");
  corner = {.from = 1, .box = {{5, 1}, {1, 1}}, .to = 0, .to_offset = {3, 5}};
  EXPECT_EQ(refusal(), refused);
}

TEST(ReadPlan, WhatAllWantIsALayoutOfTheSavedArrays) {
  const ReadItem of_u{.from = 2, .box = {{0, 0}, {1, 1}}, .to = 0, .to_offset = {2, 0}};
  const ReadItem of_half{.from = 3, .box = {{1, 2}, {2, 2}}, .to = 0, .resolve = true};
  const ReadItem nothing{.from = 1, .box = {{0, 0}, {0, 4}}, .to = 0, .to_offset = {2, 0}};
  const auto joined = JoinPlans({{}, {of_half, of_u, nothing, of_half}, {of_half}, {}}, kSaved, Registered());
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  const Layout& wanted = joined->wanted;
  EXPECT_EQ(wanted.world_size, 4u);
  EXPECT_EQ(wanted.arrays, (std::vector<ArraySpec>{kSaved[2], kSaved[3]}));
  std::vector<std::string> pieces;
  for (const Piece& p : wanted.pieces)
    pieces.push_back(std::to_string(p.array) + " of " + std::to_string(p.rank) + " " +
                     std::to_string(p.ordinal) + p.box.ToString());
  EXPECT_THAT(pieces, ElementsAre("0 of 1 0[0:1, 0:1]", "1 of 1 0[1:3, 2:4]", "1 of 1 1[1:3, 2:4]",
                                  "1 of 2 0[1:3, 2:4]"));
  EXPECT_EQ(joined->fills, (Fills{{2, 3}, {}}));
}

TEST(ReadPlan, RefusesWhatCannotBe) {
  const ReadItem good{.from = 0, .box = {{0, 0}, {2, 6}}, .to = 0, .to_offset = {2, 0}};
  ASSERT_TRUE(JoinPlans({{}, {good}, {}, {}}, kSaved, Registered()).ok());
  ReadItem item = good;
  item.from = 4;
  EXPECT_EQ(Refusal(item), "the load plan of rank 1, item 0: asks for saved array 4, of 4");
  item = good;
  item.from = static_cast<uint32_t>(-1);
  EXPECT_THAT(Refusal(item), HasSubstr("asks for saved array -1, of 4"));
  item = good;
  item.to = 2;
  EXPECT_THAT(Refusal(item), HasSubstr("is for array 2 of the program, of 2"));
  item.to = 1;
  EXPECT_THAT(Refusal(item), HasSubstr("is for table \"rows\""));
  item = good;
  item.box.offset[1] = 1;
  item.box.extent[1] = INT64_MAX;
  EXPECT_THAT(Refusal(item), HasSubstr("asks for [2, 9223372036854775807] elements at [0, 1] of the saved "
                                       "array \"old\", which is [4, 6] F64"));
  item = good;
  item.from = 3;
  EXPECT_THAT(Refusal(item), HasSubstr("without `resolve` the element type"));
  item = good;
  item.to_offset = {3, 0};
  EXPECT_THAT(Refusal(item), HasSubstr("at [3, 0]: it reaches outside"));
  item.to_offset = {1, 0};
  EXPECT_THAT(Refusal(item), HasSubstr("of that, the rank has no piece of [1:2, 0:6]"));
}

TEST(ReadPlan, TravelsUnchanged) {
  const ReadPlan plan = {
      {.from = 3, .box = {{1, 2}, {2, 2}}, .to = 1, .to_offset = {7, 8, 9}, .resolve = true},
      {.from = 1, .box = {{}, {}}, .to = 0, .to_offset = {}, .piece = 5}};
  const auto bytes = EncodePlans({plan, {}});
  ASSERT_TRUE(bytes.ok());
  const auto back = DecodePlan(bytes->at(0));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(Described(*back), Described(plan));
  EXPECT_EQ((*back)[0].to, 1u);
  EXPECT_TRUE((*back)[0].resolve);
  EXPECT_FALSE((*back)[1].resolve);
  EXPECT_THAT(*DecodePlan(bytes->at(1)), IsEmpty());
  EXPECT_EQ(DecodePlan("\x81\x01").status().code(), Code::kInternal);
}

TEST(ReadPlan, RefusesPlansThatAreTooLongForAMessage) {
  EXPECT_TRUE(CheckPlansFit(48 << 20).ok());
  EXPECT_THAT(CheckPlansFit((48 << 20) + 1).message(), HasSubstr("fewer, larger boxes"));
}

}  // namespace
}  // namespace cairn
