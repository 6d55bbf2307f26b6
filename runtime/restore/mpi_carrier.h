// MpiCarrier: a Carrier over the MPI of the program, by libcairn_mpi.so, which is loaded only where the process has an MPI that is initialised.
//
// Thread: the program's, inside cairn_restore. MPI is not called by any other.
#ifndef CAIRN_RUNTIME_RESTORE_MPI_CARRIER_H_
#define CAIRN_RUNTIME_RESTORE_MPI_CARRIER_H_

#include <memory>

#include "runtime/bulk/breaker.h"
#include "runtime/include/cairn/cairn_carrier.h"
#include "runtime/restore/carrier.h"

namespace cairn {

// kNotFound: the process has no MPI, or has not initialised it. kUnavailable: why it will not do for a session in which this member is `rank` of
// `world_size`. `trusted`: the user vouches that no other thread of the program is in MPI meanwhile.
Status OfferMpi(int rank, int world_size, bool trusted);

class MpiCarrier : public Carrier {
 public:
  // Collective, and only where OfferMpi was OK on all ranks: called by all or by none, since a rank that waits for the others spoils the program's
  // own collectives when it gives up. That ends with the breaker's reason.
  static Result<std::unique_ptr<MpiCarrier>> Connect(const Breaker& round);
  // Frees the communicator, which is of no use then. Collective: by all, with nothing under way, or by none; the destructor does not.
  void Free() { calls_.disconnect(); }

  Result<Ticket> Send(uint32_t to, std::span<const std::byte> bytes) override;
  Result<Ticket> Receive(uint32_t from, std::span<std::byte> room) override;
  Result<std::optional<size_t>> Test(Ticket ticket) override;
  bool Drop(Ticket ticket) override;
  void Progress() override { calls_.progress(); }

 private:
  explicit MpiCarrier(const cairn_carrier_v1& calls) : calls_(calls) {}
  Result<Ticket> Began(int64_t ticket) const;

  const cairn_carrier_v1& calls_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_MPI_CARRIER_H_
