#include "runtime/bulk/address_book.h"

#include <gtest/gtest.h>

#include <future>

namespace cairn {
namespace {

using std::chrono::milliseconds;
using Addresses = std::vector<std::string>;

constexpr std::chrono::seconds kLong{60};

// Two members whose messages go straight into the other's book.
struct Pair {
  AddressBook zero{[this](int rank, std::string message) {
    EXPECT_EQ(rank, 1);
    one.OnMessage(0, message);
  }};
  AddressBook one{[this](int rank, std::string message) {
    EXPECT_EQ(rank, 0);
    zero.OnMessage(1, message);
  }};
  std::shared_ptr<Breaker> breaker = *Breaker::Make();
};

TEST(AddressBook, FindsWhatAnotherRankHasPublished) {
  Pair pair;
  pair.one.Publish("restore 1", {"@x", "10.0.0.7:4711"});
  const auto found = pair.zero.Find(1, "restore 1", *pair.breaker, kLong);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(*found, (Addresses{"@x", "10.0.0.7:4711"}));
}

TEST(AddressBook, WaitsForARankThatIsNotThereYet) {
  Pair pair;
  auto found =
      std::async(std::launch::async, [&] { return pair.zero.Find(1, "restore 2", *pair.breaker, kLong); });
  pair.one.Publish("restore 1", {"@old"});
  pair.one.Publish("restore 2", {"@new"});
  const auto addresses = found.get();
  ASSERT_TRUE(addresses.ok());
  EXPECT_EQ(*addresses, Addresses{"@new"});
}

TEST(AddressBook, ForgetsAPurposeThatIsOver) {
  Pair pair;
  pair.one.Publish("p", {"@a"});
  EXPECT_TRUE(pair.zero.Find(1, "p", *pair.breaker, kLong).ok());
  pair.zero.Withdraw("p");
  pair.one.Withdraw("p");
  EXPECT_EQ(pair.zero.Find(1, "p", *pair.breaker, milliseconds(1)).status().code(), Code::kTimeout);
}

TEST(AddressBook, StopsWaitingWhenTheTransferBreaks) {
  Pair pair;
  auto found = std::async(std::launch::async, [&] { return pair.zero.Find(1, "p", *pair.breaker, kLong); });
  pair.breaker->Break({Code::kUnavailable, "rank 1 is gone"});
  const Status status = found.get().status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "rank 1 is gone");
}

TEST(AddressBook, IgnoresWhatIsNoMessageOfABook) {
  Pair pair;
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string("!no zero"), std::string("!")})
    pair.zero.OnMessage(1, bytes);
  EXPECT_EQ(pair.zero.Find(1, "no zero", *pair.breaker, milliseconds(1)).status().code(), Code::kTimeout);
}

}  // namespace
}  // namespace cairn
