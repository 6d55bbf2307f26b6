// BulkMessage: the unit of a bulk connection: a header under a MAC, then the payload, raw. Pure. Byte by byte: docs/design/data_plane.md.
//
//     u16 version     kBulkVersion
//     u16 type        the users' business, as are the ids
//     u32 bytes       of the payload
//     u64 sequence    0, 1, 2 … on this connection
//     u64 ids[3]
//     16 bytes        XXH3-128 of the payload
//     16 bytes MAC    BLAKE2b over all of the above, keyed by the connection's session key (runtime/control/handshake.h)
//     payload
//
// Numbers are little-endian. The payload is neither encrypted nor under the MAC itself: the checksum finds accidents, and the MAC says that
// the checksum is the sender's. Finding other bytes with the same XXH3 is possible for somebody who can change packets on the network.
#ifndef CAIRN_RUNTIME_BULK_MESSAGE_H_
#define CAIRN_RUNTIME_BULK_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/control/secret.h"
#include "runtime/io/hash.h"

namespace cairn {

inline constexpr uint16_t kBulkVersion = 1;
inline constexpr size_t kBulkHeaderBytes = 72;

// What a message is about. `type` and `ids` are given to the receiver as they were sent.
struct BulkSubject {
  uint16_t type = 0;
  std::array<uint64_t, 3> ids{};

  friend bool operator==(const BulkSubject&, const BulkSubject&) = default;
};

struct BulkHeader {
  BulkSubject subject;
  uint32_t bytes = 0;
  Hash128 hash;
};

std::string EncodeBulkHeader(const BulkHeader& header, uint64_t sequence, const Secret& key);

// `bytes` are kBulkHeaderBytes. kInvalid: of another version, changed, replayed or out of order.
Result<BulkHeader> DecodeBulkHeader(std::string_view bytes, uint64_t sequence, const Secret& key);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_MESSAGE_H_
