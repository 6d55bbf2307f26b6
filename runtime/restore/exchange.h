// ExecuteExchange: carries out one rank's ExchangePlan: reads and verifies its blocks, fills the program's memory, hands on and takes.
//
//   1. Where the plan names receipts, receivers are opened and their addresses published; nothing is opened or asked where nothing is shared.
//   2. The calling thread walks the plan's reads, those for others first. Each block is read once, where it belongs as far as that can be (placement.h), and
//      verified as ExecuteLoad does; what else this rank wants of it is copied out, then each group's parcel is sent to its first member,
//      straight from where it lies in one stretch.
//      A rank of the same node is not sent the parcel but told where it lies in memory that both see (arena.h), where much is handed on.
//   3. A receiver's thread takes a parcel (its checksum holds), passes it on, and copies it to where it belongs, unless it came there.
//   4. It returns when all reads are done and all receipts have come.
// There are two lanes, each with a receiver and connections of its own: parcels from lower ranks' readers travel on lane 0 among the ranks above
// the reader, and on lane 1 among those below it. On each lane parcels go up only, so the highest rank's receiver always moves on, and
// by that the next one's: nothing waits in a circle. docs/design/data_plane.md.
//
// Memory: one block, one parcel to be packed, one of each lane to be received, an arena, the sums of one file, the sockets' buffers.
//
// Errors: as ExecuteLoad for what this rank reads. kUnavailable: the exchange itself failed, here or at another rank, or the breaker was
// broken: no verdict on the checkpoint. Whichever it is, the other ranks' parts end when somebody breaks their breakers. After an error the
// destination may be partly written.
#ifndef CAIRN_RUNTIME_RESTORE_EXCHANGE_H_
#define CAIRN_RUNTIME_RESTORE_EXCHANGE_H_

#include <memory>
#include <vector>

#include "planner/exchange_plan.h"
#include "runtime/bulk/address_book.h"
#include "runtime/bulk/breaker.h"
#include "runtime/bulk/identity.h"
#include "runtime/restore/reader.h"

namespace cairn {

// How this rank meets the others. `self.purpose` names this one exchange; no two that may overlap have the same.
struct ExchangeLinks {
  BulkIdentity self;
  AddressBook* addresses = nullptr;
  std::shared_ptr<Breaker> breaker;
};

// `destinations[i]` is where piece i of the plan goes; one whose box is empty has none.
Result<LoadStats> ExecuteExchange(const ExchangePlan& plan, const std::vector<SourceFile>& files,
                                  const std::vector<Destination>& destinations, const ExchangeLinks& links,
                                  const LoadOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_EXCHANGE_H_
