// RescueShare: one member's own side of a rescue: writes images that dead ranks left on this node into an attempt of this life. The leader's
// side, and why it is done, is in rescue_leader.h.
#ifndef CAIRN_RUNTIME_SESSION_RESCUE_H_
#define CAIRN_RUNTIME_SESSION_RESCUE_H_

#include "runtime/session/protocol.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/leftovers.h"

namespace cairn {

// Writes the images of one slot into the folder `directory`, durable but for their names, and returns their record. kDamage: the slot is not
// whole any more, or its content is not what its sidecar says; nothing of it is left in the folder. Else as Drain. Blocking.
Result<MemberRecord> WriteLeft(const RescueSource& source, const std::string& directory,
                               const ImagePlan& images, const Leftovers& leftovers, FileMode mode,
                               Writer writer, DrainControl& control);

// As Order::kRescue says: fills outcome->records and, where a slot is not whole any more or its content is not what its sidecar says,
// outcome->damaged. Errors as Drain. Blocking; the application's thread.
Status RescueShare(const Order& order, const Leftovers& leftovers, FileMode mode, Writer writer,
                   Outcome* outcome);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_RESCUE_H_
