#include "runtime/host/host_protocol.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(HostProtocol, CauseReplyRoundTrips) {
  CauseReply m;
  m.id = 7;
  m.cause = Cause::kPreempted;
  m.seconds_left = 23;
  m.may_requeue = true;
  m.batch = true;
  m.warning_seconds = 25;
  m.why = "the job is being preempted";
  const auto r = DecodeHostMessage<CauseReply>(EncodeHostMessage(m));
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->id, 7u);
  EXPECT_EQ(r->cause, Cause::kPreempted);
  EXPECT_EQ(r->seconds_left, 23);
  EXPECT_TRUE(r->may_requeue && r->batch);
  EXPECT_EQ(r->warning_seconds, 25);
  EXPECT_EQ(r->why, m.why);
  EXPECT_TRUE(r->answered);
  m.answered = false;
  EXPECT_FALSE(DecodeHostMessage<CauseReply>(EncodeHostMessage(m))->answered);
  m.seconds_left.reset();
  EXPECT_FALSE(DecodeHostMessage<CauseReply>(EncodeHostMessage(m))->seconds_left.has_value());
}

TEST(HostProtocol, HolderMessagesRoundTrip) {
  const auto q = DecodeHostMessage<HolderQuery>(EncodeHostMessage(HolderQuery{1, 4000000000u, 2, 3}));
  ASSERT_TRUE(q.ok());
  EXPECT_EQ(q->job, 4000000000u);
  EXPECT_EQ(q->step, 2u);
  EXPECT_EQ(q->restart, 3);
  EXPECT_EQ(DecodeHostMessage<HolderReply>(EncodeHostMessage(HolderReply{1, Alive::kNo, "gone"}))->alive,
            Alive::kNo);
}

TEST(HostProtocol, CopyStateRoundTrips) {
  const auto all = DecodeHostMessage<CopyState>(EncodeHostMessage(CopyState{1200, 1ULL << 40, 1300, "full"}));
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->step, 1200);
  EXPECT_EQ(all->bytes, 1ULL << 40);
  EXPECT_EQ(all->under_way, 1300);
  EXPECT_EQ(all->failure, "full");
  const auto nothing = DecodeHostMessage<CopyState>(EncodeHostMessage(CopyState{}));
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->step || nothing->under_way);
}

TEST(HostProtocol, BodiesMayHoldAnyBytes) {
  const std::string body("\0\xff\xfe{\"a\":1}", 10);
  EXPECT_EQ(DecodeHostMessage<ControlRequest>(EncodeHostMessage(ControlRequest{9, body}))->body, body);
}

TEST(HostProtocol, RefusesWhatIsNoMessage) {
  EXPECT_EQ(DecodeHostMessage<CauseReply>("garbage").status().code(), Code::kInvalid);
  EXPECT_EQ(DecodeHostMessage<CauseReply>(EncodeHostMessage(RequeueQuery{1})).status().code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace cairn
