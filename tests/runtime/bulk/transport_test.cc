// Senders and receivers over real sockets, and peers that misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>

#include "runtime/bulk/receiver.h"
#include "runtime/bulk/sender.h"
#include "runtime/bulk/stream.h"
#include "runtime/control/handshake.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const Secret kToken = Secret::Random();
constexpr uint32_t kMaxPayload = 1 << 20;

BulkIdentity Rank(int rank) {
  return {.rank = rank, .key = "7.0.0", .session = "main", .token = kToken, .purpose = "test"};
}

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

struct Message {
  int from = -1;
  BulkSubject subject;
  std::string payload;
  friend bool operator==(const Message&, const Message&) = default;
};

struct Loss {
  int from = -1;
  Status why;
};

// A receiver that keeps what it is told.
class Inbox {
 public:
  explicit Inbox(const BulkIdentity& self) { Open(self, {}); }
  Inbox(const BulkIdentity& self, BulkEvents events) { Open(self, std::move(events)); }

  Message Next() { return Wait(messages_); }
  Loss NextLoss() { return Wait(losses_); }
  std::string NextRefusal() { return Wait(refusals_); }
  bool empty() {
    std::lock_guard lock(mutex_);
    return messages_.empty();
  }

  BulkSender SenderOf(const BulkIdentity& self) {
    return BulkSender(
        self, [this](int) { return receiver->addresses(); }, sender_breaker);
  }

  std::shared_ptr<Breaker> breaker = *Breaker::Make(), sender_breaker = *Breaker::Make();

 private:
  void Open(const BulkIdentity& self, BulkEvents events) {
    if (!events.take) {
      events.take = [this](int from, const BulkSubject& subject, std::span<const std::byte> payload,
                           const Hash128& hash) {
        EXPECT_EQ(hash, Hash128Of(payload));
        Put(messages_, {from, subject, {reinterpret_cast<const char*>(payload.data()), payload.size()}});
        return OkStatus();
      };
    }
    events.lost = [this](int from, const Status& why) { Put(losses_, {from, why}); };
    events.refused = [this](const std::string& line) { Put(refusals_, line); };
    auto opened = BulkReceiver::Open(self, kMaxPayload, breaker, std::move(events));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    receiver = *std::move(opened);
  }

  template <typename T>
  void Put(std::deque<T>& box, T value) {
    {
      std::lock_guard lock(mutex_);
      box.push_back(std::move(value));
    }
    changed_.notify_all();
  }

  template <typename T>
  T Wait(std::deque<T>& box) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !box.empty(); })) {
      ADD_FAILURE() << "nothing came";
      return {};
    }
    T value = std::move(box.front());
    box.pop_front();
    return value;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  std::deque<Loss> losses_;
  std::deque<std::string> refusals_;

 public:
  std::unique_ptr<BulkReceiver> receiver;  // ends before what its callbacks use
};

// A peer made by hand, which can send what no BulkSender would.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address)
      : stream_(Connected(address), *Breaker::Make(), std::chrono::seconds(60)) {}

  // As `self`, proves to belong here.
  void ShakeHands(const BulkIdentity& self, int to) {
    Handshake handshake =
        Handshake::Client({Role::kBulkSender, Role::kBulkReceiver, self.key, self.session,
                           static_cast<uint32_t>(self.rank), static_cast<uint32_t>(to), self.BulkToken()});
    Send(handshake.Start());
    while (!handshake.done()) {
      std::byte bytes[64];
      const auto n = stream_.ReadSome(bytes);
      ASSERT_TRUE(n.ok()) << n.status().message();
      const auto answer = handshake.Feed({reinterpret_cast<const char*>(bytes), *n});
      ASSERT_TRUE(answer.ok()) << answer.status().message();
      Send(*answer);
    }
    key_ = handshake.send_key();
  }

  std::string Header(const BulkSubject& subject, std::string_view payload, uint64_t sequence = 0) const {
    return EncodeBulkHeader({subject, static_cast<uint32_t>(payload.size()), Hash128Of(payload)}, sequence,
                            key_);
  }
  void Send(std::string_view bytes) { ASSERT_TRUE(stream_.Write(bytes, {}).ok()); }
  bool SeesTheEnd() {
    std::byte byte[1];
    return stream_.ReadSome(byte).status().code() == Code::kUnavailable;
  }

 private:
  static Socket Connected(const std::string& address) {
    Socket socket = *StartConnect(*Address::Parse(address));
    pollfd writable{socket.fd(), POLLOUT, 0};
    EXPECT_EQ(poll(&writable, 1, 60000), 1);
    return socket;
  }

  BulkStream stream_;
  Secret key_;
};

TEST(Bulk, DeliversMessagesWholeAndInTheirOrder) {
  Inbox inbox(Rank(1));
  BulkSender sender = inbox.SenderOf(Rank(0));
  std::vector<Message> sent;
  for (uint64_t i = 0; i < 20; ++i) {
    std::string payload(static_cast<size_t>(i * i * 2000), static_cast<char>('a' + i));
    sent.push_back({0, {static_cast<uint16_t>(i), {i, 2 * i, 3 * i}}, payload});
    ASSERT_TRUE(sender.Send(1, sent.back().subject, Bytes(payload)).ok());
  }
  for (const Message& message : sent) EXPECT_EQ(inbox.Next(), message);
}

TEST(Bulk, TravelsOverTcpAsWell) {
  Inbox inbox(Rank(1));
  BulkSender sender(
      Rank(0), [&](int) { return std::vector<std::string>{inbox.receiver->addresses().back()}; },
      inbox.sender_breaker);
  EXPECT_EQ(inbox.receiver->addresses().back().find('@'), std::string::npos);
  const std::string payload(300000, 'x');
  ASSERT_TRUE(sender.Send(1, {5, {}}, Bytes(payload)).ok());
  EXPECT_EQ(inbox.Next(), (Message{0, {5, {}}, payload}));
}

TEST(Bulk, PutsAPayloadWhereItIsTold) {
  std::string room(8, '.');
  BulkEvents events;
  events.place = [&](int, const BulkSubject& subject, uint32_t bytes) -> Result<std::span<std::byte>> {
    return std::as_writable_bytes(std::span(room)).subspan(subject.ids[0], bytes);
  };
  Inbox inbox(Rank(1), std::move(events));
  BulkSender sender = inbox.SenderOf(Rank(0));
  ASSERT_TRUE(sender.Send(1, {1, {5}}, Bytes("abc")).ok());
  ASSERT_TRUE(sender.Send(1, {1, {1}}, Bytes("xy")).ok());
  inbox.Next();
  inbox.Next();
  EXPECT_EQ(room, ".xy..abc");
}

TEST(Bulk, BringsADescriptorAlongWithItsMessageAndNoOther) {
  std::promise<std::string> read;
  BulkEvents events;
  events.take_shared = [&](int from, const BulkSubject& subject, std::span<const std::byte> payload,
                           UniqueFd descriptor) {
    char text[8] = {};
    EXPECT_EQ(pread(descriptor.get(), text, sizeof(text), 0), 5);
    read.set_value(std::string(text) + " from " + std::to_string(from) + ", type " +
                   std::to_string(subject.type) + ", with " + std::to_string(payload.size()) + " bytes");
    return OkStatus();
  };
  Inbox inbox(Rank(1), std::move(events));
  BulkSender sender = inbox.SenderOf(Rank(0));
  const auto near = sender.Near(1);
  ASSERT_TRUE(near.ok()) << near.status().message();
  EXPECT_TRUE(*near);
  UniqueFd shared(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(shared.get(), "hello", 5, 0), 5);
  ASSERT_TRUE(sender.Send(1, {1, {}}, Bytes("before")).ok());
  ASSERT_TRUE(sender.Send(1, {2, {}}, Bytes("abc"), {}, shared.get()).ok());
  ASSERT_TRUE(sender.Send(1, {3, {}}, Bytes("after")).ok());
  EXPECT_EQ(inbox.Next().payload, "before");
  EXPECT_EQ(inbox.Next().payload, "after");
  EXPECT_EQ(read.get_future().get(), "hello from 0, type 2, with 3 bytes");
}

TEST(Bulk, RefusesADescriptorThatNobodyExpects) {
  Inbox inbox(Rank(1));
  BulkSender sender = inbox.SenderOf(Rank(0));
  UniqueFd shared(memfd_create("test", MFD_CLOEXEC));
  ASSERT_TRUE(sender.Send(1, {1, {}}, Bytes("abc"), {}, shared.get()).ok());
  EXPECT_EQ(inbox.NextLoss().why.code(), Code::kInvalid);
}

TEST(Bulk, ServesManyRanksWithABoundedNumberOfConnections) {
  const int ranks = static_cast<int>(BulkSender::kMaxConnections) + 6;
  std::vector<std::unique_ptr<Inbox>> inboxes;
  for (int r = 0; r < ranks; ++r) inboxes.push_back(std::make_unique<Inbox>(Rank(r)));
  BulkSender sender(
      Rank(99), [&](int rank) { return inboxes[static_cast<size_t>(rank)]->receiver->addresses(); },
      *Breaker::Make());
  for (const char* payload : {"once", "again"}) {
    for (int r = 0; r < ranks; ++r) ASSERT_TRUE(sender.Send(r, {}, Bytes(payload)).ok());
    for (auto& inbox : inboxes) EXPECT_EQ(inbox->Next(), (Message{99, {}, payload}));
  }
}

TEST(Bulk, TurnsStrangersAway) {
  struct Stranger {
    BulkIdentity self;
    int to;
    std::string why;
  };
  BulkIdentity other_life = Rank(0), other_session = Rank(0), other_token = Rank(0), other_purpose = Rank(0);
  other_life.key = "7.0.1";
  other_session.session = "side";
  other_token.token = Secret::Random();
  other_purpose.purpose = "another test";
  for (const Stranger& stranger :
       {Stranger{other_life, 1, "tried to join 7.0.0"}, Stranger{other_session, 1, "session side"},
        Stranger{Rank(0), 2, "looked for somebody else"}, Stranger{other_token, 1, ""},
        Stranger{other_purpose, 1, ""}}) {
    SCOPED_TRACE(stranger.why);
    Inbox inbox(Rank(1));
    BulkIdentity self = stranger.self;
    BulkSender sender = inbox.SenderOf(self);
    auto sent = std::async(std::launch::async, [&] { return sender.Send(stranger.to, {}, Bytes("secret")); });
    EXPECT_THAT(inbox.NextRefusal(), HasSubstr(stranger.why));
    inbox.sender_breaker->Break({Code::kCancelled, "enough"});  // it would try for a while
    EXPECT_FALSE(sent.get().ok());
    EXPECT_TRUE(inbox.empty());
    // The door stays open for members.
    inbox.sender_breaker = *Breaker::Make();
    BulkSender member = inbox.SenderOf(Rank(3));
    ASSERT_TRUE(member.Send(1, {}, Bytes("hello")).ok());
    EXPECT_EQ(inbox.Next().payload, "hello");
  }
}

TEST(Bulk, IsNotDisturbedByGarbage) {
  Inbox inbox(Rank(1));
  RawPeer silent(inbox.receiver->addresses().front());
  RawPeer garbage(inbox.receiver->addresses().back());
  garbage.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(inbox.NextRefusal(), HasSubstr("does not speak Cairn's protocol"));
  EXPECT_TRUE(garbage.SeesTheEnd());
  BulkSender sender = inbox.SenderOf(Rank(0));
  ASSERT_TRUE(sender.Send(1, {}, Bytes("hello")).ok());
  EXPECT_EQ(inbox.Next().payload, "hello");
}

// A message that was changed on its way ends its connection and no other.
TEST(Bulk, FindsAChangedPayload) {
  Inbox inbox(Rank(1));
  BulkSender other = inbox.SenderOf(Rank(2));
  ASSERT_TRUE(other.Send(1, {}, Bytes("before")).ok());
  EXPECT_EQ(inbox.Next().payload, "before");
  RawPeer peer(inbox.receiver->addresses().front());
  peer.ShakeHands(Rank(3), 1);
  peer.Send(peer.Header({}, "payload") + "paxload");
  const Loss loss = inbox.NextLoss();
  EXPECT_EQ(loss.from, 3);
  EXPECT_EQ(loss.why.code(), Code::kInvalid);
  EXPECT_THAT(loss.why.message(), HasSubstr("rank 3"));
  EXPECT_TRUE(peer.SeesTheEnd());
  ASSERT_TRUE(other.Send(1, {}, Bytes("after")).ok());
  EXPECT_EQ(inbox.Next().payload, "after");
}

TEST(Bulk, FindsAReplayedOrChangedHeaderAndOneThatIsTooLong) {
  const std::string whole = "payload";
  for (const int kind : {0, 1, 2}) {
    Inbox inbox(Rank(1));
    RawPeer peer(inbox.receiver->addresses().front());
    peer.ShakeHands(Rank(3), 1);
    std::string first = peer.Header({}, whole);
    if (kind == 0) peer.Send(first + whole + first + whole);
    if (kind == 1) {
      first[2] = static_cast<char>(first[2] ^ 1);
      peer.Send(first + whole);
    }
    if (kind == 2) peer.Send(peer.Header({}, std::string(kMaxPayload + 1, 'x')));
    EXPECT_EQ(inbox.NextLoss().why.code(), Code::kInvalid) << kind;
    if (kind == 0) {
      EXPECT_EQ(inbox.Next().payload, whole);
    }
    EXPECT_TRUE(inbox.empty());
  }
}

TEST(Bulk, ReportsAConnectionThatEndsInTheMiddleOfAMessage) {
  for (const size_t cut : {size_t{10}, kBulkHeaderBytes + 3}) {
    Inbox inbox(Rank(1));
    {
      RawPeer peer(inbox.receiver->addresses().front());
      peer.ShakeHands(Rank(3), 1);
      peer.Send((peer.Header({}, "payload") + "payload").substr(0, cut));
    }
    const Loss loss = inbox.NextLoss();
    EXPECT_EQ(loss.from, 3);
    EXPECT_EQ(loss.why.code(), Code::kUnavailable);
  }
}

TEST(Bulk, SaysNothingOfAConnectionThatEndsBetweenMessages) {
  Inbox inbox(Rank(1));
  {
    BulkSender sender = inbox.SenderOf(Rank(0));
    ASSERT_TRUE(sender.Send(1, {}, Bytes("last")).ok());
  }
  EXPECT_EQ(inbox.Next().payload, "last");
  RawPeer peer(inbox.receiver->addresses().front());  // its loss comes after the other's would have
  peer.ShakeHands(Rank(3), 1);
  peer.Send("x" + std::string(kBulkHeaderBytes, 'y'));
  EXPECT_EQ(inbox.NextLoss().from, 3);
}

TEST(Bulk, GivesUpASenderThatStallsInTheMiddleOfAPayload) {
  BulkIdentity self = Rank(1);
  self.stall_bound = milliseconds(50);
  Inbox inbox(self);
  RawPeer peer(inbox.receiver->addresses().front());
  peer.ShakeHands(Rank(3), 1);
  peer.Send(peer.Header({}, "payload") + "pay");
  const Loss loss = inbox.NextLoss();
  EXPECT_EQ(loss.why.code(), Code::kTimeout);
  EXPECT_TRUE(peer.SeesTheEnd());
}

// A receiver that takes nothing until it is let go.
struct Blocked {
  BulkEvents Events() {
    BulkEvents events;
    events.take = [this](int, const BulkSubject&, std::span<const std::byte>, const Hash128&) {
      go.get_future().wait();
      return OkStatus();
    };
    return events;
  }
  std::promise<void> go;
};

TEST(Bulk, GivesUpAReceiverThatTakesNothing) {
  Blocked blocked;
  Inbox inbox(Rank(1), blocked.Events());
  BulkIdentity self = Rank(0);
  self.stall_bound = milliseconds(50);
  BulkSender sender = inbox.SenderOf(self);
  const std::string payload(kMaxPayload, 'x');
  Status sent;
  for (int i = 0; i < 64 && sent.ok(); ++i) sent = sender.Send(1, {}, Bytes(payload));
  EXPECT_EQ(sent.code(), Code::kTimeout);
  EXPECT_THAT(sent.message(), HasSubstr("rank 1"));
  inbox.breaker->Break({Code::kCancelled, "over"});
  blocked.go.set_value();
}

TEST(Bulk, BreakingEndsASendThatWaits) {
  Blocked blocked;
  Inbox inbox(Rank(1), blocked.Events());
  BulkSender sender = inbox.SenderOf(Rank(0));
  auto sent = std::async(std::launch::async, [&] {
    const std::string payload(kMaxPayload, 'x');
    Status status;
    while (status.ok()) status = sender.Send(1, {}, Bytes(payload));
    return status;
  });
  inbox.sender_breaker->Break({Code::kUnavailable, "rank 5 is gone"});
  const Status status = sent.get();
  EXPECT_EQ(status.message(), "rank 5 is gone");
  inbox.breaker->Break({Code::kCancelled, "over"});
  blocked.go.set_value();
}

TEST(Bulk, ReportsAReceiverThatIsGone) {
  Inbox inbox(Rank(1));
  BulkSender sender = inbox.SenderOf(Rank(0));
  ASSERT_TRUE(sender.Send(1, {}, Bytes("x")).ok());
  inbox.Next();
  inbox.receiver.reset();
  const std::string payload(kMaxPayload, 'x');
  Status sent;
  for (int i = 0; i < 64 && sent.ok(); ++i) sent = sender.Send(1, {}, Bytes(payload));
  EXPECT_EQ(sent.code(), Code::kUnavailable);
}

TEST(Bulk, ClosesAConnectionWhoseMessageIsRefusedByTheUser) {
  BulkEvents events;
  events.take = [](int, const BulkSubject&, std::span<const std::byte>, const Hash128&) {
    return Status(Code::kUnavailable, "not wanted");
  };
  Inbox inbox(Rank(1), std::move(events));
  BulkSender sender = inbox.SenderOf(Rank(0));
  ASSERT_TRUE(sender.Send(1, {}, Bytes("x")).ok());
  EXPECT_THAT(inbox.NextLoss().why.message(), HasSubstr("not wanted"));
}

}  // namespace
}  // namespace cairn
