// RescueShare: one member's own side of a rescue: writes images that dead ranks left on this node into an attempt of this life. The leader's
// side, and why it is done, is in rescue_leader.h.
#ifndef CAIRN_RUNTIME_SESSION_RESCUE_H_
#define CAIRN_RUNTIME_SESSION_RESCUE_H_

#include "runtime/session/protocol.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/leftovers.h"

namespace cairn {

// As Order::kRescue says: fills outcome->records and, where a slot is not whole any more or its content is not what its sidecar says,
// outcome->damaged. Errors as Drain. Blocking; the application's thread.
Status RescueShare(const Order& order, const Leftovers& leftovers, FileMode mode, Writer writer,
                   Outcome* outcome);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_RESCUE_H_
