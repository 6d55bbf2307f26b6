#include "runtime/control/fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "tests/runtime/control/world.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(Fabric, OpensOnceAllMembersAreThere) {
  World world;
  EXPECT_TRUE(world.AwaitReady());
}

TEST(Fabric, NeedsNoSocketForASingleMember) {
  FabricOptions options;
  options.key = "1.0.0";
  Member only(options);
  ASSERT_TRUE(only.AwaitReady()->status.ok());
  EXPECT_TRUE(only.Do([](Fabric* f) { return f->SendToLeader(9, "to myself"); }).ok());
  EXPECT_TRUE(only.AwaitMessage(0, 9, "to myself"));
  EXPECT_TRUE(only.Do([](Fabric* f) { return f->Broadcast(10, "to all"); }).ok());
  EXPECT_TRUE(only.AwaitMessage(0, 10, "to all"));
  EXPECT_EQ(only.Do([](Fabric* f) { return f->SendToHost(16, ""); }).code(), Code::kUnavailable);
}

TEST(Fabric, BroadcastsToEveryMemberAndRankZeroItself) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  EXPECT_TRUE(world[0].Do([](Fabric* f) { return f->Broadcast(7, "arm"); }).ok());
  for (int r = 0; r < 6; ++r) EXPECT_TRUE(world[r].AwaitMessage(0, 7, "arm")) << r;
}

TEST(Fabric, LetsOnlyRankZeroBroadcast) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  EXPECT_EQ(world[4].Do([](Fabric* f) { return f->Broadcast(7, "x"); }).code(), Code::kInvalid);
}

TEST(Fabric, RelaysBetweenAnyTwoMembers) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  for (int from = 0; from < 6; ++from) {
    for (int to = 0; to < 6; ++to) {
      const std::string text = std::to_string(from) + " to " + std::to_string(to);
      ASSERT_TRUE(world[from].Do([&](Fabric* f) { return f->SendTo(to, 8, text); }).ok());
    }
  }
  for (int to = 0; to < 6; ++to) {
    std::set<int> senders;
    while (senders.size() < 6) {
      const auto e = world[to].Await([](const Event& m) { return m.kind == Event::kMessage; });
      ASSERT_TRUE(e.has_value()) << to;
      EXPECT_EQ(e->text, std::to_string(e->rank) + " to " + std::to_string(to));
      senders.insert(e->rank);
    }
  }
}

TEST(Fabric, KeepsTheOrderOfASendersMessages) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(
        world[5]
            .Do([&](Fabric* f) { return f->SendToLeader(static_cast<uint16_t>(i), std::string(1000, 'x')); })
            .ok());
  }
  for (uint16_t i = 0; i < 200; ++i) {
    const auto e = world[0].Await([](const Event& m) { return m.kind == Event::kMessage; });
    ASSERT_TRUE(e.has_value());
    EXPECT_EQ(e->type, i);
  }
}

TEST(Fabric, CarriesMessagesOf64MiBAndNoLarger) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  std::string layout(Fabric::kMaxMessageBytes, 'L');
  layout.back() = 'E';
  ASSERT_TRUE(world[4].Do([&](Fabric* f) { return f->SendToLeader(3, layout); }).ok());
  const auto e = world[0].Await([](const Event& m) { return m.kind == Event::kMessage; });
  ASSERT_TRUE(e.has_value());
  EXPECT_TRUE(e->text == layout);
  EXPECT_EQ(world[4].Do([&](Fabric* f) { return f->SendToLeader(3, layout + "x"); }).code(), Code::kInvalid);
}

TEST(Fabric, LetsRankZeroTalkToTheHost) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  ASSERT_TRUE(world[0].Do([](Fabric* f) { return f->SendToHost(16, "why?"); }).ok());
  const auto e = world[0].Await([](const Event& h) { return h.kind == Event::kHost; });
  ASSERT_TRUE(e.has_value());
  EXPECT_EQ(e->type, 16);
  EXPECT_EQ(e->text, "echo why?");
  EXPECT_EQ(world[1].Do([](Fabric* f) { return f->SendToHost(16, "why?"); }).code(), Code::kUnavailable);
}

TEST(Fabric, NamesTheRanksThatDoNotCome) {
  Host host;
  std::vector<std::unique_ptr<Member>> members;
  for (const int r : {0, 1, 2, 4}) {
    FabricOptions o = host.OptionsFor(r, 6, World::NodeOf(r));
    o.open_bound = milliseconds(2000);
    members.push_back(std::make_unique<Member>(o));
  }
  for (auto& m : members) {
    const auto ready = m->AwaitReady();
    ASSERT_TRUE(ready.has_value());
    EXPECT_EQ(ready->text, "waiting for ranks 3, 5");
    EXPECT_FALSE(m->Do([](Fabric* f) { return f->SendToLeader(1, ""); }).ok());
  }
}

TEST(Fabric, TellsEverybodyAtOnceThatWorldSizesDiffer) {
  Host host;
  Member one(host.OptionsFor(1, 4, "n1")), two(host.OptionsFor(2, 5, "n1"));
  for (Member* m : {&one, &two}) {
    const auto ready = m->AwaitReady();
    ASSERT_TRUE(ready.has_value());
    EXPECT_THAT(ready->text, HasSubstr("all members must open it with the same world size"));
  }
}

TEST(Fabric, RefusesARankThatRegistersTwice) {
  Host host;
  Member first(host.OptionsFor(1, 2, "n1")), second(host.OptionsFor(1, 2, "n1"));
  Member& refused = [&]() -> Member& {
    // Whichever of the two came second is told so.
    for (;;) {
      for (Member* m : {&first, &second}) {
        for (const Event& e : m->All()) {
          if (e.kind == Event::kReady) return *m;
        }
      }
      std::this_thread::yield();
    }
  }();
  EXPECT_THAT(refused.AwaitReady()->text, HasSubstr("rank 1 has opened this session already"));
  Member zero(host.OptionsFor(0, 2, "n1"));
  EXPECT_TRUE(zero.AwaitReady()->status.ok());
}

TEST(Fabric, TellsEverybodyThatADeadMemberIsGone) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  world[4].Die();
  for (const int r : {0, 1, 2, 3, 5}) EXPECT_TRUE(world[r].AwaitPeer(4, "gone")) << r;
  EXPECT_EQ(world[0].Do([](Fabric* f) { return f->SendTo(4, 1, "x"); }).code(), Code::kUnavailable);
  EXPECT_EQ(world[0].Do([](Fabric* f) { return f->Broadcast(1, "still"); }).code(), Code::kUnavailable);
  EXPECT_TRUE(world[5].AwaitMessage(0, 1, "still"));
}

TEST(Fabric, CountsTheNodeOfADeadLeaderAsGone) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  world[3].Die();
  for (const int lost : {3, 4, 5}) EXPECT_TRUE(world[0].AwaitPeer(lost, "gone")) << lost;
  EXPECT_TRUE(world[4].AwaitPeer(0, "gone"));
  EXPECT_TRUE(world[5].AwaitPeer(0, "gone"));
}

TEST(Fabric, TellsEverybodyThatRankZeroIsGone) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  world[0].Die();
  for (int r = 1; r < 6; ++r) EXPECT_TRUE(world[r].AwaitPeer(0, "gone")) << r;
}

TEST(Fabric, SuspectsASilentMemberAndForgivesItWhenItAnswers) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  world[4].Stop();
  for (const int r : {0, 2, 5}) EXPECT_TRUE(world[r].AwaitPeer(4, "suspect")) << r;
  world[4].Continue();
  for (const int r : {0, 2, 5}) EXPECT_TRUE(world[r].AwaitPeer(4, "alive")) << r;
  // It was itself stopped, and blames nobody.
  for (const Event& e : world[4].All()) EXPECT_NE(e.kind, Event::kPeer) << e.rank << " " << e.text;
  EXPECT_TRUE(world[0].Do([](Fabric* f) { return f->SendTo(4, 2, "welcome back"); }).ok());
  EXPECT_TRUE(world[4].AwaitMessage(0, 2, "welcome back"));
}

TEST(Fabric, SuspectsTheWholeNodeOfASilentLeader) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  world[3].Stop();
  for (const int r : {3, 4, 5}) EXPECT_TRUE(world[0].AwaitPeer(r, "suspect")) << r;
  EXPECT_TRUE(world[5].AwaitPeer(0, "suspect"));
  world[3].Continue();
  for (const int r : {3, 4, 5}) EXPECT_TRUE(world[0].AwaitPeer(r, "alive")) << r;
  EXPECT_TRUE(world[5].AwaitPeer(0, "alive"));
}

TEST(Fabric, GivesUpASilentMemberAfterTheBound) {
  World world([](FabricOptions* o) { o->gone_after = milliseconds(1000); });
  ASSERT_TRUE(world.AwaitReady());
  world[5].Stop();
  EXPECT_TRUE(world[0].AwaitPeer(5, "suspect"));
  EXPECT_TRUE(world[0].AwaitPeer(5, "gone"));
  world[5].Continue();
  EXPECT_TRUE(world[5].AwaitPeer(0, "gone"));  // and it learns that it was given up
}

TEST(Fabric, TellsAMemberThatLeftFromOneThatIsGone) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  world[5].Leave();
  world[5].Die();
  EXPECT_TRUE(world[0].AwaitPeer(5, "left"));
  EXPECT_TRUE(world[1].AwaitPeer(5, "left"));
  world[0].Leave();
  world[0].Die();
  EXPECT_TRUE(world[1].AwaitPeer(0, "left"));
  EXPECT_TRUE(world[3].AwaitPeer(0, "left"));
}

TEST(Fabric, RefusesALateRankOfAnEarlierLifeAndGoesOn) {
  World world;
  ASSERT_TRUE(world.AwaitReady());
  FabricOptions late = world.Options(2);
  late.key = "12.0.0";
  Member ghost(late);
  const auto ready = ghost.AwaitReady();
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->status.code(), Code::kPermission);
  EXPECT_THAT(world.host.AwaitRefused("another life"), HasSubstr("a member of 12.0.0 tried to join 12.0.1"));
  ASSERT_TRUE(world[0].Do([](Fabric* f) { return f->Broadcast(7, "on"); }).ok());
  EXPECT_TRUE(world[5].AwaitMessage(0, 7, "on"));
}

TEST(Fabric, RefusesAMemberWithAWrongToken) {
  Host host;
  FabricOptions stranger = host.OptionsFor(0, 1, "n1");
  stranger.token = Secret::Random();
  Member member(stranger);
  EXPECT_EQ(member.AwaitReady()->status.code(), Code::kPermission);
  EXPECT_THAT(host.AwaitRefused("wrong token"), HasSubstr("gave no proof of our token"));
}

// Sends bytes to the host's port and waits for the end of the connection.
void Disturb(uint16_t port, const std::string& bytes) {
  Socket s = std::move(*StartConnect(*Address::Parse("127.0.0.1:" + std::to_string(port))));
  pollfd p{s.fd(), POLLOUT, 0};
  poll(&p, 1, 5000);
  send(s.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  p.events = POLLIN;
  ASSERT_EQ(poll(&p, 1, 10000), 1);
  char c;
  EXPECT_LE(recv(s.fd(), &c, 1, 0), 0);
}

TEST(Fabric, IsNotDisturbedByGarbageOnTheHostsPort) {
  World world;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::string bytes(1 + random() % 4000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    Disturb(world.host.port, bytes);
  }
  Disturb(world.host.port, std::string("CAIRN\0\0\1", 8) + std::string(600, '\xff'));
  const Socket half_open =
      std::move(*StartConnect(*Address::Parse("127.0.0.1:" + std::to_string(world.host.port))));
  ASSERT_TRUE(world.AwaitReady());
  ASSERT_TRUE(world[0].Do([](Fabric* f) { return f->Broadcast(7, "on"); }).ok());
  EXPECT_TRUE(world[5].AwaitMessage(0, 7, "on"));
  EXPECT_NE(world.host.AwaitRefused("garbage"), "");
  std::set<std::string> kinds;
  for (const std::string& line : world.host.refused()) {
    EXPECT_TRUE(kinds.insert(line.substr(0, line.find(')'))).second) << "said twice: " << line;
  }
}

}  // namespace
}  // namespace cairn
