#include "runtime/session/exchange_way.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

const Status kNone(Code::kNotFound, "this process has no MPI");
const Status kOther(Code::kUnavailable, "the program's MPI is of another family");

// Each rank on a node of its own.
ExchangeWay Choose(ExchangeBy setting, const std::vector<Status>& offers) {
  std::vector<Inventory> inventories;
  for (const Status& offer : offers)
    inventories.push_back({.node = "n" + std::to_string(inventories.size()), .mpi = offer});
  return ChooseWay(setting, inventories);
}

TEST(ExchangeWay, IsMpiWhereAllRanksHaveIt) {
  for (const ExchangeBy setting : {ExchangeBy::kAuto, ExchangeBy::kMpi}) {
    const ExchangeWay way = Choose(setting, {OkStatus(), OkStatus()});
    EXPECT_EQ(way.way, Order::kMpi);
    EXPECT_EQ(way.why_not_mpi, "");
  }
}

TEST(ExchangeWay, IsTheMemoryOfTheNodeWhereAllRanksAreOnOneUnlessMpiWasAskedFor) {
  const std::vector<Inventory> together(2, {.node = "n1", .mpi = OkStatus()});
  EXPECT_EQ(ChooseWay(ExchangeBy::kAuto, together).way, Order::kSockets);
  EXPECT_EQ(ChooseWay(ExchangeBy::kAuto, together).why_not_mpi, "");
  EXPECT_EQ(ChooseWay(ExchangeBy::kMpi, together).way, Order::kMpi);
}

TEST(ExchangeWay, SaysWhoKeepsAllFromMpiWhereSomeHaveIt) {
  const ExchangeWay way = Choose(ExchangeBy::kAuto, {OkStatus(), OkStatus(), kNone});
  EXPECT_EQ(way.way, Order::kSockets);
  EXPECT_EQ(way.why_not_mpi, "rank 2: this process has no MPI");
  EXPECT_FALSE(way.asked_for_it);
  EXPECT_EQ(Choose(ExchangeBy::kAuto, {kOther, kOther}).why_not_mpi,
            "rank 0: the program's MPI is of another family");
}

TEST(ExchangeWay, SaysNothingOfMpiInProgramsWithoutItUnlessItWasAskedFor) {
  EXPECT_EQ(Choose(ExchangeBy::kAuto, {kNone, kNone}).why_not_mpi, "");
  const ExchangeWay way = Choose(ExchangeBy::kMpi, {kNone, kNone});
  EXPECT_EQ(way.way, Order::kSockets);
  EXPECT_EQ(way.why_not_mpi, "rank 0: this process has no MPI");
  EXPECT_TRUE(way.asked_for_it);
}

TEST(ExchangeWay, IsSocketsWhereThatWasAskedForAndForOneRank) {
  EXPECT_EQ(Choose(ExchangeBy::kTcp, {OkStatus(), OkStatus()}).way, Order::kSockets);
  EXPECT_EQ(Choose(ExchangeBy::kMpi, {OkStatus()}).way, Order::kSockets);
}

}  // namespace
}  // namespace cairn
