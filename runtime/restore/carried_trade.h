// TradeCarried: every rank has some bytes for every other one; each gets what the others have for it, over a Carrier. Collective over all ranks; on the
// calling thread alone.
//
//   1. The ranks meet (CarriedRound). Unless all come, nothing is carried.
//   2. To each other rank goes the number of bytes, then the bytes, in messages of at most kTradeBytes; each is begun when the one before it is over. So are
//      receives: the number says how many follow.
//   3. It returns when all has gone and come.
// Nobody waits for one rank before it serves the others, so this cannot get stuck.
//
// When a rank fails, what is under way is given up, and with it its memory, which is kept for good. No reading is done here that could fail.
#ifndef CAIRN_RUNTIME_RESTORE_CARRIED_TRADE_H_
#define CAIRN_RUNTIME_RESTORE_CARRIED_TRADE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/restore/carried_round.h"

namespace cairn {

inline constexpr size_t kTradeBytes = 4 << 20;

// `parts` and the result by rank; rank `self` gets its own part back. As ExecuteCarried, of Carrier::Progress too. kUnavailable and kCancelled: as ExecuteCarried.
Result<std::vector<std::vector<std::byte>>> TradeCarried(std::vector<std::vector<std::byte>> parts,
                                                         uint32_t self, const CarriedRound& round);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_CARRIED_TRADE_H_
