#include "runtime/session/local_snapshot.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr char kRun[] = "0123456789abcdef";
const Hash128 kLayout = *Hash128::FromHex("00112233445566778899aabbccddeeff");

// A slot of rank `rank` of `world` in folder f<rank>, of save 5 of epoch 3 at step 40, unless said otherwise.
struct SlotOf {
  uint32_t rank, world;
  uint64_t epoch = 3, save = 5, boundary = 40;
  int64_t label = 400, count = 40;
  bool final = false, layout = true;
  std::string run = kRun, slot = "slot0";

  LeftSlot Make() const {
    return {"f" + std::to_string(rank),
            slot,
            {epoch, save, boundary, kLayout, rank, world},
            run,
            {label, count, final},
            {rank + 1},
            layout};
  }
};

Inventory On(const std::string& node, const std::vector<SlotOf>& slots = {}) {
  Inventory inventory{.node = node};
  for (const SlotOf& slot : slots) inventory.slots.push_back(slot.Make());
  return inventory;
}

std::optional<LocalSnapshot> Newest(const std::vector<Inventory>& inventories) {
  return NewestLocal(inventories, kRun, [](const LocalSnapshot&) { return true; });
}

TEST(NewestLocal, IsWholeWhenEveryRankOfItsLifeIsFoundSomewhere) {
  const auto found = Newest({On("a", {{0, 3}, {1, 3}}), On("a"), On("b", {{2, 3}})});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->epoch, 3u);
  EXPECT_EQ(found->step, 40);
  EXPECT_EQ(found->label, 400);
  EXPECT_EQ(found->world_size, 3u);
  ASSERT_EQ(found->holders.size(), 3u);
  EXPECT_EQ(found->holders[1].at(0).node, "a");
  EXPECT_EQ(found->holders[1].at(0).source.folder, "f1");
  EXPECT_EQ(found->holders[2].at(0).node, "b");
  EXPECT_EQ(found->holders[2].at(0).source.rank, 2u);
}

TEST(NewestLocal, IsNothingWhenOneRankIsMissingOrOfAnotherSave) {
  const std::vector<std::vector<SlotOf>> tables[] = {
      {{{0, 2}}},                             // a node is not there
      {{{0, 2}}, {{.rank = 1, .world = 3}}},  // another world size
      {{{0, 2}}, {{.rank = 1, .world = 2, .save = 6}}},
      {{{0, 2}}, {{.rank = 1, .world = 2, .epoch = 2}}},
      {{{0, 2}}, {{.rank = 1, .world = 2, .boundary = 41}}},
      {{{0, 2}}, {{.rank = 1, .world = 2, .label = 401}}},  // the ranks do not agree on their step
      {{{0, 2}}, {{.rank = 1, .world = 2, .run = "fedcba9876543210"}}},
      {{{.rank = 0, .world = 1, .layout = false}}},
      {{{.rank = 0, .world = 1, .epoch = 0}}},  // its life did not own the directory
      {{{.rank = 1, .world = 1}}},
  };
  int row = 0;
  for (const auto& table : tables) {
    std::vector<Inventory> inventories;
    for (const auto& slots : table)
      inventories.push_back(On("n" + std::to_string(inventories.size()), slots));
    EXPECT_FALSE(Newest(inventories)) << "row " << row;
    ++row;
  }
}

TEST(NewestLocal, TakesTheNewestByEpochThenStepOfThoseThatAreComplete) {
  const SlotOf old_epoch{.rank = 0, .world = 1, .epoch = 2, .boundary = 90};
  const SlotOf older{.rank = 0, .world = 1, .save = 4, .boundary = 30};
  const SlotOf newer{.rank = 0, .world = 1};
  const SlotOf half{.rank = 0, .world = 2, .save = 6, .boundary = 50};
  const std::vector<Inventory> inventories = {On("a", {old_epoch, older, newer, half})};
  ASSERT_TRUE(Newest(inventories));
  EXPECT_EQ(Newest(inventories)->step, 40);
  const auto declined =
      NewestLocal(inventories, kRun, [](const LocalSnapshot& snapshot) { return snapshot.step != 40; });
  ASSERT_TRUE(declined);
  EXPECT_EQ(declined->step, 30);
}

TEST(NewestLocal, CountsARankInFinalizeForEveryLaterBoundary) {
  const SlotOf final{.rank = 0, .world = 2, .label = 380, .count = 38, .final = true};
  const auto with_one = Newest({On("a", {final, {1, 2}})});
  ASSERT_TRUE(with_one);
  EXPECT_EQ(with_one->step, 40);
  EXPECT_EQ(with_one->label, 400);
  // All are there: the state is that of the last step that was made.
  const SlotOf last{.rank = 1, .world = 2, .label = 390, .count = 39, .final = true};
  const auto with_all = Newest({On("a", {final, last})});
  ASSERT_TRUE(with_all);
  EXPECT_EQ(with_all->step, 39);
  EXPECT_EQ(with_all->label, 390);
}

TEST(NewestLocal, NamesARanksOwnImagesBeforeItsPartnersCopy) {
  const auto found = Newest({On("a", {{.rank = 0, .world = 1, .slot = "partner0"}}), On("b", {{0, 1}})});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->holders.size(), 1u);
  ASSERT_EQ(found->holders[0].size(), 2u);
  EXPECT_EQ(found->holders[0][0].source.slot, "slot0");
  EXPECT_EQ(found->holders[0][1].source.slot, "partner0");
}

std::vector<uint32_t> RanksOf(const std::vector<RescueSource>& sources) {
  std::vector<uint32_t> ranks;
  for (const RescueSource& source : sources) ranks.push_back(source.rank);
  return ranks;
}

TEST(HeldOf, TakesWhatThereIsOfASaveAlsoWhereItIsNotComplete) {
  const std::vector<Inventory> inventories = {
      On("a",
         {{0, 4}, {.rank = 1, .world = 4, .boundary = 39, .count = 39}, {.rank = 1, .world = 4, .epoch = 2}}),
      On("b", {{.rank = 0, .world = 4, .slot = "partner0"}, {2, 4}}), On("b")};
  const std::vector<LocalHolder> held = HeldOf(inventories, kRun, 3, 40);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].source.slot, "slot0");
  EXPECT_EQ(RanksOf(SourcesOn(held, "a")), (std::vector<uint32_t>{0}));
  EXPECT_EQ(RanksOf(SourcesOn(held, "b")), (std::vector<uint32_t>{2}));
  EXPECT_TRUE(HeldOf(inventories, "fedcba9876543210", 3, 40).empty());

  const std::vector<NearNode> nodes = NearNodes(held, inventories);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].ranks, (std::vector<uint32_t>{0}));
  EXPECT_EQ(nodes[0].files, (std::vector<uint32_t>{1}));
  EXPECT_EQ(nodes[1].ranks, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(nodes[1].files, (std::vector<uint32_t>{3}));
}

TEST(DealOut, GivesTheSlotsOfANodeToAllRanksThatAreThereNow) {
  const std::vector<Inventory> inventories = {On("a", {{0, 4}, {1, 4}, {2, 4}}), On("a"), On("b", {{3, 4}}),
                                              On("c")};
  const auto dealt = DealOut(HeldOf(inventories, kRun, 3, 40), inventories);
  ASSERT_EQ(dealt.size(), 4u);
  EXPECT_EQ(RanksOf(dealt[0]), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(RanksOf(dealt[1]), (std::vector<uint32_t>{1}));
  EXPECT_EQ(RanksOf(dealt[2]), (std::vector<uint32_t>{3}));
  EXPECT_TRUE(dealt[3].empty());
}

}  // namespace
}  // namespace cairn
