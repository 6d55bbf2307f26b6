#include "runtime/session/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kLong{60};

// Rounds of two members, of which the test plays both: what they say is there before the leader asks.
class Round : public ::testing::Test {
 protected:
  void Say(int rank, const Outcome& outcome) {
    mailbox_.Put({rank, Outcome::kType, EncodeSessionMessage(outcome)});
  }

  Result<std::vector<Outcome>> Ask(std::chrono::milliseconds standstill = kLong) {
    Members members(2,
                    {&mailbox_, [](int, const Order&) {},
                     [this](const Order& order) {
                       told_.push_back(order.kind);
                       if (on_told_) on_told_();
                     }},
                    standstill);
    return members.Ask([](int) { return Order{.kind = Order::kLoad}; }, kLong);
  }

  Mailbox mailbox_;
  std::vector<Order::Kind> told_;
  std::function<void()> on_told_;
};

TEST_F(Round, AllAreToldToGoEachTimeTheLastOneIsReady) {
  for (const int rank : {1, 0, 0, 1}) Say(rank, {.word = Outcome::kReady});
  Say(1, {.word = Outcome::kMoving});
  Say(0, {.read_bytes = 3});
  Say(1, {.read_bytes = 4});
  const auto outcomes = Ask();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status().message();
  EXPECT_EQ((*outcomes)[0].read_bytes, 3u);
  EXPECT_EQ((*outcomes)[1].read_bytes, 4u);
  EXPECT_THAT(told_, ElementsAre(Order::kGo, Order::kGo));
}

TEST_F(Round, NobodyGoesWhereOneCannotAndThatOnesReasonIsTheRounds) {
  Say(0, {.word = Outcome::kReady});
  Say(1, {.status = {Code::kOutOfMemory, "no memory"}});
  Say(0, {.status = {Code::kCancelled, "another rank has failed"}});
  EXPECT_EQ(Ask().status().message(), "rank 1: no memory");
  EXPECT_THAT(told_, ElementsAre(Order::kAbandon));
}

TEST_F(Round, IsAbandonedOnceAMemberSaysThatItHasFailedAndOverWhenAllAreThrough) {
  Say(1, {.word = Outcome::kMoving, .status = {Code::kDamage, "block 3"}});
  Say(0, {.status = {Code::kCancelled, "another rank has failed"}});
  Say(1, {.status = {Code::kUnavailable, "nothing has moved"}});
  EXPECT_EQ(Ask().status().message(), "rank 1: block 3");
  EXPECT_THAT(told_, ElementsAre(Order::kAbandon));
  EXPECT_EQ(mailbox_.Take(Outcome::kType, -1, std::chrono::milliseconds(0)).status().code(), Code::kTimeout);
}

TEST_F(Round, WhereNoneNeedsTheOthersNobodyIsToldToGo) {
  Say(0, {});
  Say(1, {});
  EXPECT_TRUE(Ask().ok());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(Round, IsAbandonedWhenAllWentAndNobodySaysThatSomethingMoves) {
  for (const int rank : {0, 1}) Say(rank, {.word = Outcome::kReady});
  on_told_ = [this] {
    if (told_.back() != Order::kAbandon) return;
    for (const int rank : {0, 1}) Say(rank, {.status = {Code::kCancelled, "another rank has failed"}});
  };
  const Status status = Ask(std::chrono::milliseconds(1)).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("nothing has moved at any rank for"));
  EXPECT_THAT(told_, ElementsAre(Order::kGo, Order::kAbandon));
}

}  // namespace
}  // namespace cairn
