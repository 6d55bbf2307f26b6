// ShuffleRows: brings the rows of a table from the ranks that have read them to the ranks that they belong to. Collective over all ranks. Over a carrier as
// carried_trade.h says; over sockets:
//
//   1. Every rank opens a receiver and publishes its address.
//   2. Every rank sends each other rank the rows that belong there, in their order, in messages of at most kRowMessageBytes (or one row), then
//      how many they were.
//   3. A rank is done when all others have said how many, and as many have come.
// A receiver only keeps what comes, so nobody waits for somebody who waits. Every rank speaks to every other, if only to say that it has nothing.
//
// Memory: what comes, besides what was given; the sockets' buffers.
#ifndef CAIRN_RUNTIME_RESTORE_ROW_SHUFFLE_H_
#define CAIRN_RUNTIME_RESTORE_ROW_SHUFFLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/restore/carried_round.h"
#include "runtime/restore/exchange.h"

namespace cairn {

inline constexpr uint64_t kRowMessageBytes = 4 << 20;

// The rows of `table` that belong to this rank: by the rank that gave them, then in its order. owners[i]: to whom row i belongs, below world_size.
// `carried`: nullptr: over sockets.
// kUnavailable: the transfer failed, here or at another rank, or the breaker was broken. As in ExecuteExchange, the others' parts end when
// somebody breaks their breakers.
Result<std::vector<std::byte>> ShuffleRows(const std::string& table, std::span<const std::byte> rows,
                                           uint64_t row_bytes, std::span<const uint32_t> owners,
                                           uint32_t world_size, const ExchangeLinks& links,
                                           const CarriedRound* carried);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_ROW_SHUFFLE_H_
