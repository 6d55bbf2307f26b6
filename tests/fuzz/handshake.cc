#include "runtime/control/handshake.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

HandshakeParty Party(Role self, Role peer) {
  HandshakeParty party;
  party.self = self;
  party.peer = peer;
  party.key = "12.0.1";
  party.session = "main";
  return party;
}

// Who does not hold the token never gets through, whatever is sent in whatever pieces.
void Parse(std::string_view bytes, size_t chunk) {
  const fuzz::MemoryBound bound(bytes.size());
  HandshakeParty server_party = Party(Role::kParent, Role::kChild);
  server_party.token.bytes[0] = 1;
  Handshake server = Handshake::Server(server_party, {Role::kChild});
  HandshakeParty client_party = Party(Role::kChild, Role::kParent);
  client_party.token.bytes[0] = 1;
  Handshake client = Handshake::Client(client_party);
  static_cast<void>(client.Start());
  for (Handshake* end : {&server, &client}) {
    for (size_t at = 0; at < bytes.size(); at += chunk) {
      if (!end->Feed(bytes.substr(at, chunk)).ok()) break;
    }
    FUZZ_CHECK(!end->done());
  }
}

// A client of the right life whose hello was changed: done only if nothing was.
void ParseChanged(std::string_view changes) {
  const fuzz::MemoryBound bound(changes.size());
  Handshake client = Handshake::Client(Party(Role::kChild, Role::kParent));
  Handshake server = Handshake::Server(Party(Role::kParent, Role::kChild), {Role::kChild});
  const std::string sent = client.Start();
  std::string hello = sent;
  for (size_t i = 0; i + 1 < changes.size() && i < 8; i += 2) {
    const size_t at = static_cast<uint8_t>(changes[i]) % hello.size();
    hello[at] = static_cast<char>(hello[at] ^ changes[i + 1]);
  }
  const auto challenge = server.Feed(hello);
  if (!challenge.ok() || challenge->empty()) return;
  const auto proof = client.Feed(*challenge);
  FUZZ_CHECK(proof.ok() == (hello == sent));
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  cairn::Parse(cairn::fuzz::View(data + 1, size - 1), 1 + data[0] % 64);
  cairn::ParseChanged(cairn::fuzz::View(data, size));
  return 0;
}
