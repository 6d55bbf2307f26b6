#include "runtime/control/control_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "runtime/host/host_protocol.h"
#include "tests/runtime/control/world.h"

namespace cairn {
namespace {

ControlClient::TimePoint In(std::chrono::milliseconds d) { return std::chrono::steady_clock::now() + d; }

ControlPoint PointOf(const Host& host) {
  return {"127.0.0.1:" + std::to_string(host.port), "12.0.1", "main", host.token.ControlKey()};
}

TEST(ControlClient, AsksTheLeaderAndGetsItsReplies) {
  Host host;
  Member leader(host.OptionsFor(0, 1, "n1"));
  ASSERT_TRUE(leader.AwaitReady()->status.ok());
  auto client = ControlClient::Connect(PointOf(host), In(kPatience));
  ASSERT_TRUE(client.ok()) << client.status().message();
  ASSERT_TRUE((*client)->Send("save").ok());
  const auto request = leader.Await([](const Event& e) { return e.kind == Event::kHost; });
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(request->type, kHostControlRequest);
  const auto decoded = DecodeHostMessage<ControlRequest>(request->text);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->body, "save");
  for (const char* body : {"agreed on step 7", "committed"}) {
    ASSERT_TRUE(
        leader
            .Do([&](Fabric* f) {
              return f->SendToHost(kHostControlReply, EncodeHostMessage(ControlReply{decoded->id, body}));
            })
            .ok());
  }
  EXPECT_EQ(*(*client)->Receive(In(kPatience)), "agreed on step 7");
  EXPECT_EQ(*(*client)->Receive(In(kPatience)), "committed");
  EXPECT_EQ((*client)->Receive(In(std::chrono::milliseconds(20))).status().code(), Code::kTimeout);
}

TEST(ControlClient, LearnsThatTheLeaderIsGone) {
  Host host;
  Member leader(host.OptionsFor(0, 1, "n1"));
  ASSERT_TRUE(leader.AwaitReady()->status.ok());
  auto client = ControlClient::Connect(PointOf(host), In(kPatience));
  ASSERT_TRUE((*client)->Send("save").ok());
  ASSERT_TRUE(leader.Await([](const Event& e) { return e.kind == Event::kHost; }).has_value());
  leader.Die();
  EXPECT_EQ((*client)->Receive(In(kPatience)).status().code(), Code::kUnavailable);
}

TEST(ControlClient, IsRefusedWithTheKeyOfAnotherLife) {
  Host host;
  ControlPoint point = PointOf(host);
  point.key = "12.0.0";
  EXPECT_EQ(ControlClient::Connect(point, In(kPatience)).status().code(), Code::kPermission);
}

TEST(ControlClient, SaysThatNobodyListensAnyMore) {
  ControlPoint point;
  {
    Host host;
    point = PointOf(host);
  }
  EXPECT_EQ(ControlClient::Connect(point, In(kPatience)).status().code(), Code::kUnavailable);
}

TEST(ControlFile, RoundTripsAndIsPrivate) {
  std::string name = std::filesystem::temp_directory_path() / "cairn-control-XXXXXX";
  const std::string dir = mkdtemp(name.data());
  EXPECT_EQ(ReadControlFile(dir).status().code(), Code::kNotFound);
  const ControlPoint point{"10.0.0.1:7,127.0.0.1:7", "12.0.1", "main", Secret::Random()};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(WriteControlFile(dir, point).ok());  // a later life overwrites
  const auto read = ReadControlFile(dir);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->rendezvous, point.rendezvous);
  EXPECT_EQ(read->key, point.key);
  EXPECT_EQ(read->session, point.session);
  EXPECT_EQ(read->control_key.bytes, point.control_key.bytes);
  struct stat st {};
  ASSERT_EQ(stat((dir + "/CONTROL").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  std::filesystem::remove_all(dir);
}

TEST(ControlFile, IsRemovedByTheLifeThatWroteItAlone) {
  std::string name = std::filesystem::temp_directory_path() / "cairn-control-XXXXXX";
  const std::string dir = mkdtemp(name.data());
  const ControlPoint older{"10.0.0.1:7", "12.0.1", "main", Secret::Random()};
  const ControlPoint newer{"10.0.0.1:7", "12.0.2", "main", Secret::Random()};
  ASSERT_TRUE(WriteControlFile(dir, newer).ok());
  RemoveControlFile(dir, older);
  EXPECT_TRUE(ReadControlFile(dir).ok());
  RemoveControlFile(dir, newer);
  EXPECT_EQ(ReadControlFile(dir).status().code(), Code::kNotFound);
  std::filesystem::remove_all(dir);
}

TEST(ControlFile, RefusesAFifoWithoutWaitingForAWriter) {
  std::string name = std::filesystem::temp_directory_path() / "cairn-control-XXXXXX";
  const std::string dir = mkdtemp(name.data());
  ASSERT_EQ(mkfifo((dir + "/CONTROL").c_str(), 0600), 0);
  EXPECT_EQ(ReadControlFile(dir).status().code(), Code::kDamage);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace cairn
