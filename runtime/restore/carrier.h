// Carrier: carries bytes between the ranks of a restore in the place of sockets: over the program's MPI (mpi_carrier.h). It speaks a library's way: what takes
// time is begun and asked after, on the one thread of the program that is inside cairn_restore, and nothing waits for another rank.
#ifndef CAIRN_RUNTIME_RESTORE_CARRIER_H_
#define CAIRN_RUNTIME_RESTORE_CARRIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "planner/base/status.h"

namespace cairn {

class Carrier {
 public:
  using Ticket = int64_t;

  virtual ~Carrier() = default;

  // Begin. The memory must stay as it is until the ticket is over. Between two ranks, messages meet receives in the order in which both were
  // begun. A message may be shorter than the room for it.
  virtual Result<Ticket> Send(uint32_t to, std::span<const std::byte> bytes) = 0;
  virtual Result<Ticket> Receive(uint32_t from, std::span<std::byte> room) = 0;

  // Once it is over, how many bytes have come (of a receive, else 0), and the ticket is gone; nothing before. An error: the ticket is gone, and the carrier
  // is of no use any more.
  virtual Result<std::optional<size_t>> Test(Ticket ticket) = 0;
  // Gives up a receive. false: something may still come into its memory.
  virtual bool Drop(Ticket ticket) = 0;
  // Brings on what is over here and not yet there: MPI may keep a message back until it is called again. To be called as long as another rank may wait.
  virtual void Progress() = 0;
};

// Memory that a carrier may use for as long as it likes, since what was under way there was given up.
void KeepForGood(std::shared_ptr<void> memory);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_CARRIER_H_
