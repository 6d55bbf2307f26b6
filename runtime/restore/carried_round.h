// CarriedRound: how this rank meets the others in what they do over a Carrier in one round of a restore. Its functions are called by the thread that does it.
#ifndef CAIRN_RUNTIME_RESTORE_CARRIED_ROUND_H_
#define CAIRN_RUNTIME_RESTORE_CARRIED_ROUND_H_

#include <functional>
#include <memory>

#include "runtime/bulk/breaker.h"
#include "runtime/restore/carrier.h"

namespace cairn {

struct CarriedRound {
  Carrier* carrier = nullptr;            // nullptr: until all have met to make one
  std::shared_ptr<const Breaker> life;   // broken: some rank is no more there, or this one leaves
  std::shared_ptr<const Breaker> round;  // broken: some rank has failed, too

  std::function<void()> ready;      // says that this rank is ready
  std::function<bool()> all_ready;  // whether all ranks have said so since
  std::function<void()> moved;      // something has moved at this rank; called often
  // Called once, as soon as this rank has failed: the others need not wait until it returns.
  std::function<void(const Status& why)> failed;

  // Says that this rank is ready, and waits until all are, while what it has sent goes on. Not OK: they will not be.
  Status Meet() const;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_CARRIED_ROUND_H_
