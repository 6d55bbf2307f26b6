// RescueShare: one member's own side of a rescue: writes images that dead ranks left on this node into an attempt of this life. The leader's
// side, and why it is done, is in rescue_leader.h.
#ifndef CAIRN_RUNTIME_SESSION_RESCUE_H_
#define CAIRN_RUNTIME_SESSION_RESCUE_H_

#include <map>
#include <string>

#include "runtime/session/protocol.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/leftovers.h"

namespace cairn {

// As Order::kRescue says; what becomes Outcome::records. kDamage: a slot is not whole any more, or its content is not what its sidecar says.
// Errors else as Drain. Blocking; the application's thread.
Result<std::map<uint32_t, std::string>> RescueShare(const Order& order, const Leftovers& leftovers,
                                                    FileMode mode, Writer writer);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_RESCUE_H_
