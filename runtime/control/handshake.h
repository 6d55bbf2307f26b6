// Handshake: how two ends of a connection prove to each other that they belong to the same life of the same step. Pure: bytes in, bytes out.
//
//  1. client → server  hello:      magic[8] "CAIRN\0\0\1", client's role u8, server's role u8, client's rank u32, wanted rank u32,
//                                  lengths of key and session u8 each, nonce[32], key, session
//  2. server → client  challenge:  nonce[32], MAC(secret, "server", transcript)
//  3. client → server  proof:      MAC(secret, "client", transcript)
//
// The transcript is the hello and the server's nonce; so each proof is bound to both nonces, both roles and ranks, the key
// (<job>.<step>.<restart count>: a member of an earlier life has another one) and the session. The proofs differ by their label: none can be
// sent back. The session keys, one for each direction, are derived from the same transcript; frames (frame.h) follow at once.
// The secret is the step's token, or Secret::ControlKey() of it for the role kControl.
#ifndef CAIRN_RUNTIME_CONTROL_HANDSHAKE_H_
#define CAIRN_RUNTIME_CONTROL_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/secret.h"

namespace cairn {

enum class Role : uint8_t {
  kHost = 1,          // server: the host process
  kMember = 2,        // client of the host
  kParent = 3,        // server: a node leader, or rank 0
  kChild = 4,         // client of a parent
  kControl = 5,       // client of the host: the `cairn` command
  kBulkReceiver = 6,  // server: a member that takes bulk data (runtime/bulk)
  kBulkSender = 7,    // client of a bulk receiver
};

// Why a peer was refused. Each kind is logged once and counted.
enum class Refusal : uint8_t {
  kNone,
  kGarbage,
  kOtherLife,
  kOtherSession,
  kWrongRole,
  kWrongToken,
  kTooSlow,
  kTooMany
};
std::string_view RefusalName(Refusal refusal);  // "garbage", "another life", …

inline constexpr size_t kMaxIdentityBytes = 255;  // of key and of session

struct HandshakeParty {
  Role self = Role::kMember;
  Role peer = Role::kHost;  // a server's is ignored: it has `accepts`
  std::string key;          // ≤ kMaxIdentityBytes, as is session
  std::string session;      // a server's "" = any session
  uint32_t rank = 0;        // of this end; 0 for the host
  uint32_t peer_rank = 0;   // that a client wants to reach; ignored in a server
  Secret token;             // of the step; a client of the role kControl gives its control key
};

class Handshake {
 public:
  static Handshake Client(const HandshakeParty& party);
  static Handshake Server(const HandshakeParty& party, std::vector<Role> accepts);

  // What the client sends first.
  std::string Start();

  // Takes bytes from the peer and returns what to send. kPermission: refused, refusal() says why; close the
  // connection. At most ~600 bytes are held before the peer is known.
  Result<std::string> Feed(std::string_view bytes);

  bool done() const { return state_ == State::kDone; }
  Refusal refusal() const { return refusal_; }
  bool challenged() const {
    return state_ == State::kServerAwaitsProof;
  }  // a server: the proof is still to come

  // Once done: the peer, the keys, and the bytes that came behind the handshake, which belong to the first
  // frames.
  Role peer_role() const { return peer_role_; }
  uint32_t peer_rank() const { return peer_rank_; }
  const std::string& session() const { return session_; }
  const Secret& send_key() const { return send_key_; }
  const Secret& receive_key() const { return receive_key_; }
  std::string TakeRest() { return std::move(buffer_); }

 private:
  enum class State : uint8_t {
    kServerAwaitsHello,
    kClientAwaitsChallenge,
    kServerAwaitsProof,
    kDone,
    kRefused
  };

  explicit Handshake(const HandshakeParty& party) : party_(party) {}
  Status Refuse(Refusal refusal, std::string message);
  Result<std::string> TakeHello();
  Result<std::string> TakeChallenge();
  Result<std::string> TakeProof();
  void DeriveKeys(bool client);
  Mac Proof(std::string_view label) const;

  HandshakeParty party_;
  std::vector<Role> accepts_;
  State state_ = State::kServerAwaitsHello;
  Refusal refusal_ = Refusal::kNone;
  Secret secret_;
  std::string transcript_;
  std::string buffer_;
  Role peer_role_ = Role::kHost;
  uint32_t peer_rank_ = 0;
  std::string session_;
  Secret send_key_, receive_key_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_HANDSHAKE_H_
