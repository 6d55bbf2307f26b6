#include "runtime/control/acceptor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace cairn {
namespace {

constexpr size_t kAtOnce = 256;  // acceptor.h
constexpr int kBoundMs = 60'000;

Secret Token() {
  Secret token;
  token.bytes.fill(7);
  return token;
}

// A client that does each act of its handshake when it is told to.
class Client {
 public:
  explicit Client(const std::string& address) : socket_(*StartConnect(*Address::Parse(address))) {}

  void SayHello() { Send(handshake_.Start()); }

  // Whether there is something to read, or the connection has ended.
  bool HasAnswer(int bound_ms) {
    pollfd entry{socket_.fd(), POLLIN, 0};
    return poll(&entry, 1, bound_ms) == 1;
  }

  void Prove() {
    ASSERT_TRUE(HasAnswer(kBoundMs));
    char bytes[1024];
    const ssize_t count = read(socket_.fd(), bytes, sizeof bytes);
    ASSERT_GT(count, 0) << "the connection was ended";
    auto proof = handshake_.Feed({bytes, static_cast<size_t>(count)});
    ASSERT_TRUE(proof.ok());
    Send(*proof);
  }

 private:
  void Send(const std::string& bytes) {
    ASSERT_EQ(send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  Socket socket_;
  Handshake handshake_ = Handshake::Client({Role::kChild, Role::kParent, "12.0.1", "main", 5, 3, Token()});
};

class AcceptorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<Socket> listeners;
    listeners.push_back(*Listen(*Address::Parse(address_)));
    loop_->Run([&] {
      acceptor_ = std::make_unique<Acceptor>(
          loop_.get(), std::move(listeners),
          HandshakeParty{Role::kParent, Role::kChild, "12.0.1", "main", 3, 0, Token()},
          std::vector<Role>{Role::kChild},
          [this](std::unique_ptr<Connection> connection) {
            connections_.push_back(std::move(connection));
            ++admitted_;
          },
          nullptr);
    });
  }

  void TearDown() override {
    loop_->Run([this] {
      connections_.clear();
      acceptor_.reset();
    });
  }

  bool Admits(size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBoundMs);
    while (admitted_ < count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return admitted_ == count;
  }

  uint64_t Refused(Refusal kind) {
    uint64_t count = 0;
    loop_->Run([&] { count = acceptor_->refused(kind); });
    return count;
  }

  const std::string address_ = "@cairn-acceptor-test-" + std::to_string(getpid());
  std::unique_ptr<Loop> loop_ = *Loop::Start("test-loop");
  std::unique_ptr<Acceptor> acceptor_;                    // the loop's
  std::vector<std::unique_ptr<Connection>> connections_;  // the loop's
  std::atomic<size_t> admitted_{0};
};

TEST_F(AcceptorTest, AdmitsAllThatCanProveThemselvesHoweverManyComeAtOnce) {
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kAtOnce + 40; ++i) {
    clients.push_back(std::make_unique<Client>(address_));
    clients.back()->SayHello();
  }
  for (size_t i = 0; i < kAtOnce; ++i) ASSERT_TRUE(clients[i]->HasAnswer(kBoundMs));
  EXPECT_FALSE(clients.back()->HasAnswer(0));  // it waits for its turn
  for (auto& client : clients) client->Prove();
  EXPECT_TRUE(Admits(clients.size()));
  EXPECT_EQ(Refused(Refusal::kTooMany), 0u);
}

TEST_F(AcceptorTest, LetsTheOldestOfThoseThatSayNothingGiveWay) {
  std::vector<std::unique_ptr<Client>> strangers;
  for (size_t i = 0; i < kAtOnce; ++i) strangers.push_back(std::make_unique<Client>(address_));
  Client client(address_);
  client.SayHello();
  client.Prove();
  EXPECT_TRUE(Admits(1));
  EXPECT_EQ(Refused(Refusal::kTooMany), 1u);
  EXPECT_TRUE(strangers.front()->HasAnswer(kBoundMs)) << "its connection should have been ended";
  EXPECT_FALSE(strangers.back()->HasAnswer(0));
}

}  // namespace
}  // namespace cairn
