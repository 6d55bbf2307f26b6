// Whether a life may go on from a checkpoint after which others have died. docs/design/restore.md, section 5.
#ifndef CAIRN_RUNTIME_SESSION_STRIKES_H_
#define CAIRN_RUNTIME_SESSION_STRIKES_H_

#include <cstdint>

#include "runtime/catalog/checkpoints.h"

namespace cairn {

// OK; or, with `limit` strikes (runtime/catalog/lives.h) by lives before `epoch`, kCancelled with a text that names those lives, how each
// ended, and how to go on: to load it once more would go on for ever. Other errors are the directory's.
Status MayTryAgain(const RunDirectory& dir, const Listing& listing, const Checkpoint& checkpoint,
                   uint32_t epoch, int limit);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_STRIKES_H_
