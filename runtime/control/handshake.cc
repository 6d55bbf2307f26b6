#include "runtime/control/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "runtime/control/wire.h"

namespace cairn {
namespace {

constexpr std::string_view kMagic("CAIRN\0\0\1", 8);
constexpr size_t kNonceBytes = 32;
constexpr size_t kHelloHeadBytes = kMagic.size() + 2 + 4 + 4 + 2 + kNonceBytes;
constexpr size_t kChallengeBytes = kNonceBytes + sizeof(Mac);
constexpr std::string_view kClient = "client", kServer = "server";

std::string Nonce() {
  std::string nonce(kNonceBytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

void Append(std::string* out, const Mac& mac) {
  out->append(reinterpret_cast<const char*>(mac.data()), mac.size());
}

Mac ToMac(std::string_view bytes) {
  Mac mac;
  std::memcpy(mac.data(), bytes.data(), mac.size());
  return mac;
}

// What a stranger sent, fit for a log line.
std::string Printable(std::string_view text) {
  std::string out(text.substr(0, 64));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace

std::string_view RefusalName(Refusal refusal) {
  static constexpr std::string_view kNames[] = {
      "none",       "garbage",     "another life", "another session",
      "wrong role", "wrong token", "too slow",     "too many"};
  return kNames[static_cast<size_t>(refusal)];
}

Handshake Handshake::Client(const HandshakeParty& party) {
  Handshake h(party);
  h.state_ = State::kClientAwaitsChallenge;
  h.secret_ = party.token;
  h.session_ = party.session;
  h.peer_role_ = party.peer;
  h.peer_rank_ = party.peer_rank;
  return h;
}

Handshake Handshake::Server(const HandshakeParty& party, std::vector<Role> accepts) {
  Handshake h(party);
  h.accepts_ = std::move(accepts);
  return h;
}

std::string Handshake::Start() {
  transcript_ = kMagic;
  PutWire(&transcript_, static_cast<uint8_t>(party_.self));
  PutWire(&transcript_, static_cast<uint8_t>(party_.peer));
  PutWire(&transcript_, party_.rank);
  PutWire(&transcript_, party_.peer_rank);
  PutWire(&transcript_, static_cast<uint8_t>(party_.key.size()));
  PutWire(&transcript_, static_cast<uint8_t>(party_.session.size()));
  transcript_ += Nonce() + party_.key + party_.session;
  return transcript_;
}

Result<std::string> Handshake::Feed(std::string_view bytes) {
  if (state_ == State::kRefused) return Status(Code::kPermission, "refused before");
  buffer_.append(bytes);
  switch (state_) {
    case State::kServerAwaitsHello:
      return TakeHello();
    case State::kClientAwaitsChallenge:
      return TakeChallenge();
    case State::kServerAwaitsProof:
      return TakeProof();
    case State::kDone:
    case State::kRefused:
      break;
  }
  return std::string();
}

Status Handshake::Refuse(Refusal refusal, std::string message) {
  state_ = State::kRefused;
  refusal_ = refusal;
  buffer_.clear();
  return Status(Code::kPermission, std::move(message));
}

Result<std::string> Handshake::TakeHello() {
  const size_t seen = std::min(buffer_.size(), kMagic.size());
  if (std::string_view(buffer_).substr(0, seen) != kMagic.substr(0, seen)) {
    return Refuse(Refusal::kGarbage, "something that does not speak Cairn's protocol connected");
  }
  if (buffer_.size() < kHelloHeadBytes) return std::string();
  const size_t key_bytes = GetWire<uint8_t>(buffer_, 18), session_bytes = GetWire<uint8_t>(buffer_, 19);
  const size_t hello_bytes = kHelloHeadBytes + key_bytes + session_bytes;
  if (buffer_.size() < hello_bytes) return std::string();

  peer_role_ = static_cast<Role>(GetWire<uint8_t>(buffer_, 8));
  const Role wanted_role = static_cast<Role>(GetWire<uint8_t>(buffer_, 9));
  peer_rank_ = GetWire<uint32_t>(buffer_, 10);
  const uint32_t wanted_rank = GetWire<uint32_t>(buffer_, 14);
  const std::string key = buffer_.substr(kHelloHeadBytes, key_bytes);
  session_ = buffer_.substr(kHelloHeadBytes + key_bytes, session_bytes);
  if (key != party_.key) {
    return Refuse(Refusal::kOtherLife, "a member of " + Printable(key) + " tried to join " + party_.key);
  }
  if (!party_.session.empty() && session_ != party_.session) {
    return Refuse(Refusal::kOtherSession,
                  "a member of session " + Printable(session_) + " tried to join session " + party_.session);
  }
  if (wanted_role != party_.self || wanted_rank != party_.rank ||
      std::find(accepts_.begin(), accepts_.end(), peer_role_) == accepts_.end()) {
    return Refuse(Refusal::kWrongRole,
                  "rank " + std::to_string(peer_rank_) + " looked for somebody else here");
  }
  secret_ = peer_role_ == Role::kControl ? party_.token.ControlKey() : party_.token;
  const std::string nonce = Nonce();
  transcript_ = buffer_.substr(0, hello_bytes) + nonce;
  buffer_.erase(0, hello_bytes);
  state_ = State::kServerAwaitsProof;
  std::string challenge = nonce;
  Append(&challenge, Proof(kServer));
  // A client sends nothing before it has read the challenge, so whatever is left over is no handshake.
  if (!buffer_.empty()) return Refuse(Refusal::kGarbage, "a client sent more than its hello");
  return challenge;
}

Result<std::string> Handshake::TakeChallenge() {
  if (buffer_.size() < kChallengeBytes) return std::string();
  transcript_ += buffer_.substr(0, kNonceBytes);
  const Mac proof = ToMac(std::string_view(buffer_).substr(kNonceBytes));
  buffer_.erase(0, kChallengeBytes);
  if (!SameMac(proof, Proof(kServer))) {
    return Refuse(Refusal::kWrongToken, "the server does not hold the token of this step");
  }
  DeriveKeys(true);
  std::string answer;
  Append(&answer, Proof(kClient));
  return answer;
}

Result<std::string> Handshake::TakeProof() {
  if (buffer_.size() < sizeof(Mac)) return std::string();
  const Mac proof = ToMac(buffer_);
  buffer_.erase(0, sizeof(Mac));
  if (!SameMac(proof, Proof(kClient))) {
    return Refuse(Refusal::kWrongToken, "a client that says it is rank " + std::to_string(peer_rank_) +
                                            " does not hold the token of this step");
  }
  DeriveKeys(false);
  return std::string();
}

void Handshake::DeriveKeys(bool client) {
  const Secret to_server = secret_.Derive("cairn to server v1" + transcript_);
  const Secret to_client = secret_.Derive("cairn to client v1" + transcript_);
  send_key_ = client ? to_server : to_client;
  receive_key_ = client ? to_client : to_server;
  state_ = State::kDone;
}

Mac Handshake::Proof(std::string_view label) const {
  return ComputeMac(secret_, "cairn proof v1 " + std::string(label), transcript_);
}

}  // namespace cairn
