// ExecuteCarried: carries out one rank's ExchangePlan over a Carrier, on the calling thread alone. As ExecuteExchange else.
//
//   1. Each rank makes ready all that can fail before others rely on it, then meets the others (CarriedRound). Unless all come, nothing is carried.
//   2. The *turns* of a rank are the blocks that it reads for others, and those of which it gets a parcel, by file, then block: one order for all ranks.
//   3. Receives are begun in the order of the turns, as far ahead as there are buffers (kTaking). A buffer is free again when its parcel was copied to its
//      place and passed on.
//   4. Blocks for others are read in the order of the turns, as far ahead as there are buffers (kReading). One is free again when its parcels have gone.
//   5. Sends are begun in the order of the turns, each when what it sends is there.
//   6. When none of this moves, a block is read that this rank alone wants.
//
// It cannot get stuck. Of all the hops that are not over take the first: by file, by block, then by its distance from the block's reader. All that comes before it
// is over. So the receiver has begun to receive it, for all buffers of earlier turns are free, and buffers are taken in order; the sender has what it sends,
// for it has received it, or has read it into a buffer that was free; and it has nothing to send before. So that hop comes to its end.
//
// A rank that fails goes through the rest of its turns with empty messages, and so do those that get one: they tell that somebody has failed, and
// meet what others have begun. So nothing is under way when it returns, as long as all ranks live. Where one does not, or nothing moves here for
// kFailedStandstill once somebody has failed, what is under way is given up, and with it its buffers: MPI may use them for as long as it likes. Nothing else is
// measured by a clock here: whoever breaks `round` may, by what all ranks say of themselves (`moved`).
//
// Bytes are not hashed again behind the reader: the carrier is trusted with them, as the program trusts it with its own.
// Memory: kReading blocks with what is packed of them, kTaking parcels, the block that it reads for itself, the sums of two files.
#ifndef CAIRN_RUNTIME_RESTORE_CARRIED_EXCHANGE_H_
#define CAIRN_RUNTIME_RESTORE_CARRIED_EXCHANGE_H_

#include <vector>

#include "planner/exchange_plan.h"
#include "runtime/restore/carried_round.h"
#include "runtime/restore/reader.h"

namespace cairn {

// The caller goes on calling Carrier::Progress until all ranks have returned.
// Errors: as ExecuteExchange; kUnavailable too when ranks were given up. The carrier is of no use after that.
Result<LoadStats> ExecuteCarried(const ExchangePlan& plan, const std::vector<SourceFile>& files,
                                 const std::vector<Destination>& destinations, const CarriedRound& round,
                                 const LoadOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_CARRIED_EXCHANGE_H_
