#include "runtime/control/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using testing::HasSubstr;

Secret Token(uint8_t fill) {
  Secret token;
  token.bytes.fill(fill);
  return token;
}

HandshakeParty Child() { return {Role::kChild, Role::kParent, "12.0.1", "main", 5, 3, Token(7)}; }
HandshakeParty Parent() { return {Role::kParent, Role::kChild, "12.0.1", "main", 3, 0, Token(7)}; }
Handshake ParentServer() { return Handshake::Server(Parent(), {Role::kChild}); }

// Runs a whole handshake; the first refusal of either side ends it.
Status Meet(Handshake* client, Handshake* server) {
  auto challenge = server->Feed(client->Start());
  CAIRN_RETURN_IF_ERROR(challenge.status());
  auto proof = client->Feed(*challenge);
  CAIRN_RETURN_IF_ERROR(proof.status());
  return server->Feed(*proof).status();
}

Status Meet(const HandshakeParty& client_party, Handshake* server) {
  Handshake client = Handshake::Client(client_party);
  return Meet(&client, server);
}

TEST(Handshake, GivesBothEndsTheSameKeysOnePerDirection) {
  Handshake client = Handshake::Client(Child()), server = ParentServer();
  ASSERT_TRUE(Meet(&client, &server).ok());
  ASSERT_TRUE(client.done());
  ASSERT_TRUE(server.done());
  EXPECT_EQ(client.send_key().bytes, server.receive_key().bytes);
  EXPECT_EQ(client.receive_key().bytes, server.send_key().bytes);
  EXPECT_NE(client.send_key().bytes, client.receive_key().bytes);
  EXPECT_EQ(server.peer_rank(), 5u);
  EXPECT_EQ(server.peer_role(), Role::kChild);
}

TEST(Handshake, GivesEveryConnectionItsOwnKeys) {
  Handshake client1 = Handshake::Client(Child()), server1 = ParentServer();
  Handshake client2 = Handshake::Client(Child()), server2 = ParentServer();
  ASSERT_TRUE(Meet(&client1, &server1).ok());
  ASSERT_TRUE(Meet(&client2, &server2).ok());
  EXPECT_NE(client1.send_key().bytes, client2.send_key().bytes);
}

TEST(Handshake, WorksByteByByte) {
  Handshake client = Handshake::Client(Child()), server = ParentServer();
  std::string to_server = client.Start(), to_client;
  while (!to_server.empty() || !to_client.empty()) {
    std::string& bytes = to_server.empty() ? to_client : to_server;
    auto answer = (&bytes == &to_client ? client : server).Feed(bytes.substr(0, 1));
    ASSERT_TRUE(answer.ok());
    bytes.erase(0, 1);
    (&bytes == &to_client ? to_server : to_client) += *answer;
  }
  EXPECT_TRUE(client.done() && server.done());
}

TEST(Handshake, KeepsWhatComesBehindTheProofForTheFrames) {
  Handshake client = Handshake::Client(Child()), server = ParentServer();
  auto challenge = server.Feed(client.Start());
  auto proof = client.Feed(*challenge);
  ASSERT_TRUE(server.Feed(*proof + "frame").ok());
  EXPECT_EQ(server.TakeRest(), "frame");
}

TEST(Handshake, RefusesAClientWithAWrongToken) {
  // A client that does not check the server's proof: it sends its own all the same.
  HandshakeParty stranger = Child();
  stranger.token = Token(8);
  Handshake client = Handshake::Client(stranger), server = ParentServer();
  auto challenge = server.Feed(client.Start());
  ASSERT_TRUE(challenge.ok());
  EXPECT_FALSE(server.Feed(std::string(16, 'p')).ok());
  EXPECT_EQ(server.refusal(), Refusal::kWrongToken);
}

TEST(Handshake, LetsAClientSeeThatTheServerHasAWrongToken) {
  HandshakeParty impostor = Parent();
  impostor.token = Token(8);
  Handshake client = Handshake::Client(Child()), server = Handshake::Server(impostor, {Role::kChild});
  EXPECT_EQ(Meet(&client, &server).code(), Code::kPermission);
  EXPECT_EQ(client.refusal(), Refusal::kWrongToken);
}

TEST(Handshake, RefusesAMemberOfAnEarlierLife) {
  HandshakeParty late = Child();
  late.key = "12.0.0";
  Handshake server = ParentServer();
  const Status status = Meet(late, &server);
  EXPECT_EQ(server.refusal(), Refusal::kOtherLife);
  EXPECT_THAT(status.message(), HasSubstr("12.0.0"));
  EXPECT_THAT(status.message(), HasSubstr("12.0.1"));
}

TEST(Handshake, RefusesAnotherSession) {
  HandshakeParty other = Child();
  other.session = "eval";
  Handshake server = ParentServer();
  EXPECT_FALSE(Meet(other, &server).ok());
  EXPECT_EQ(server.refusal(), Refusal::kOtherSession);
}

TEST(Handshake, RefusesWrongRolesAndRanks) {
  for (const auto& [self, peer, peer_rank] :
       {std::tuple{Role::kParent, Role::kParent, 3u}, std::tuple{Role::kMember, Role::kParent, 3u},
        std::tuple{Role::kChild, Role::kHost, 3u}, std::tuple{Role::kChild, Role::kParent, 4u}}) {
    HandshakeParty party = Child();
    party.self = self;
    party.peer = peer;
    party.peer_rank = peer_rank;
    Handshake server = ParentServer();
    EXPECT_FALSE(Meet(party, &server).ok());
    EXPECT_EQ(server.refusal(), Refusal::kWrongRole);
  }
}

TEST(Handshake, AcceptsNoReflectedProof) {
  Handshake client = Handshake::Client(Child()), server = ParentServer();
  auto challenge = server.Feed(client.Start());
  ASSERT_TRUE(challenge.ok());
  const std::string servers_own_proof = challenge->substr(32);
  EXPECT_FALSE(server.Feed(servers_own_proof).ok());
  EXPECT_EQ(server.refusal(), Refusal::kWrongToken);
}

TEST(Handshake, AcceptsNoReplayedProof) {
  Handshake client = Handshake::Client(Child()), first = ParentServer(), second = ParentServer();
  const std::string hello = client.Start();
  auto challenge = first.Feed(hello);
  auto proof = client.Feed(*challenge);
  ASSERT_TRUE(first.Feed(*proof).ok());
  ASSERT_TRUE(second.Feed(hello).ok());
  EXPECT_FALSE(second.Feed(*proof).ok());
}

TEST(Handshake, RefusesGarbageAtTheFirstWrongByte) {
  Handshake server = ParentServer();
  EXPECT_FALSE(server.Feed("G").ok());
  EXPECT_EQ(server.refusal(), Refusal::kGarbage);
}

TEST(Handshake, RefusesEverythingAfterARefusal) {
  Handshake server = ParentServer();
  ASSERT_FALSE(server.Feed("GET / HTTP/1.1").ok());
  EXPECT_FALSE(Meet(Child(), &server).ok());
}

TEST(Handshake, LetsTheControlKeyAskButNotJoin) {
  HandshakeParty host{Role::kHost, Role::kMember, "12.0.1", "", 0, 0, Token(7)};
  HandshakeParty control{Role::kControl, Role::kHost, "12.0.1", "main", 0, 0, Token(7).ControlKey()};
  Handshake asks = Handshake::Server(host, {Role::kMember, Role::kControl});
  EXPECT_TRUE(Meet(control, &asks).ok());
  EXPECT_EQ(asks.session(), "main");

  control.self = Role::kMember;
  Handshake joins = Handshake::Server(host, {Role::kMember, Role::kControl});
  EXPECT_FALSE(Meet(control, &joins).ok());
}

}  // namespace
}  // namespace cairn
