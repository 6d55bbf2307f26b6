#include "runtime/control/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Registration Member(int rank, int world_size, const std::string& node) {
  return {rank,
          world_size,
          node,
          60000,
          "@local-" + std::to_string(rank),
          {"10.0.0." + std::to_string(rank) + ":1"}};
}

TEST(RendezvousTable, MakesATreeOfNodesUnderRankZero) {
  RendezvousTable table;
  // Round-robin over two nodes: n1 has 0, 2, 4 and n2 has 1, 3, 5.
  for (int r = 5; r >= 0; --r) ASSERT_TRUE(table.Add(Member(r, 6, r % 2 == 0 ? "n1" : "n2")).ok());
  ASSERT_TRUE(table.complete());

  const Assignment root = table.Assign(0);
  EXPECT_EQ(root.parent, -1);
  ASSERT_EQ(root.children.size(), 3u);
  EXPECT_EQ(root.children[0].rank, 2);
  EXPECT_EQ(root.children[1].rank, 4);
  EXPECT_EQ(root.children[2].rank, 1);
  EXPECT_THAT(root.children[2].covers, ElementsAre(1, 3, 5));

  const Assignment leader = table.Assign(1);
  EXPECT_EQ(leader.parent, 0);
  EXPECT_THAT(leader.parent_addresses, ElementsAre("10.0.0.0:1"));  // another node: no local socket
  EXPECT_EQ(leader.children.size(), 2u);

  const Assignment leaf = table.Assign(5);
  EXPECT_EQ(leaf.parent, 1);
  EXPECT_THAT(leaf.parent_addresses, ElementsAre("@local-1", "10.0.0.1:1"));
  EXPECT_TRUE(leaf.children.empty());
}

TEST(RendezvousTable, NamesTheMissingRanks) {
  RendezvousTable table;
  for (const int r : {0, 1, 2, 4}) ASSERT_TRUE(table.Add(Member(r, 6, "n")).ok());
  EXPECT_FALSE(table.complete());
  EXPECT_EQ(table.Missing(), "waiting for ranks 3, 5");
  table.Remove(4);
  EXPECT_EQ(table.Missing(), "waiting for ranks 3, 4, 5");
}

TEST(RendezvousTable, RefusesARankThatIsThereAlready) {
  RendezvousTable table;
  ASSERT_TRUE(table.Add(Member(1, 2, "n")).ok());
  const Status status = table.Add(Member(1, 2, "m"));
  EXPECT_EQ(status.code(), Code::kExists);
  EXPECT_THAT(status.message(), HasSubstr("rank 1"));
}

TEST(RendezvousTable, RefusesAnotherWorldSizeAndRanksOutsideOfIt) {
  RendezvousTable table;
  ASSERT_TRUE(table.Add(Member(0, 2, "n")).ok());
  EXPECT_EQ(table.Add(Member(1, 3, "n")).code(), Code::kInvalid);
  EXPECT_EQ(table.Add(Member(2, 2, "n")).code(), Code::kInvalid);
  EXPECT_EQ(table.Add(Member(-1, 2, "n")).code(), Code::kInvalid);
}

TEST(Rendezvous, MessagesRoundTrip) {
  auto r = DecodeRegistration(EncodeRegistration(Member(3, 6, "n2")));
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->rank, 3);
  EXPECT_EQ(r->world_size, 6);
  EXPECT_EQ(r->node, "n2");
  EXPECT_EQ(r->open_bound_ms, 60000);
  EXPECT_EQ(r->local, "@local-3");
  EXPECT_THAT(r->addresses, ElementsAre("10.0.0.3:1"));

  auto a = DecodeAssignment(EncodeAssignment({1, {"@x", "a:1"}, {{4, {4, 5}}}}));
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->parent, 1);
  EXPECT_THAT(a->parent_addresses, ElementsAre("@x", "a:1"));
  ASSERT_EQ(a->children.size(), 1u);
  EXPECT_EQ(a->children[0].rank, 4);
  EXPECT_THAT(a->children[0].covers, ElementsAre(4, 5));
}

TEST(Rendezvous, RefusesWhatIsNoMessage) {
  EXPECT_EQ(DecodeRegistration("garbage").status().code(), Code::kInvalid);
  EXPECT_EQ(DecodeAssignment("").status().code(), Code::kInvalid);
}

TEST(RankList, NamesAtMostSixteen) {
  EXPECT_EQ(RankList({7}), "rank 7");
  std::vector<int> many;
  for (int r = 0; r < 20; ++r) many.push_back(r);
  EXPECT_EQ(RankList(many), "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more");
}

}  // namespace
}  // namespace cairn
