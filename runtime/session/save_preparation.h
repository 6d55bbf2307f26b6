// How the leader gets all members ready for the saves of a life: after the load, when the program's own memory is in use and what earlier lives
// left is not any more.
//
//   1. Once the items are merged, it is settled who writes files together (ChooseWriters), and all are told the layout (TellLayout).
//   2. Where ranks write together: the first rank of each writer makes the images, then the others are told where they lie. Where one of
//      them cannot, it is said, and all are told that each rank writes its own files.
//   3. Where each writes its own, all prepare at once, with a partner that keeps copies if that is asked for. Who cannot is said; the job goes on.
//
// Blocking, on the members; the clerk's thread. Errors: a member is gone, or --checkpoint-require does not let the job go on.
#ifndef CAIRN_RUNTIME_SESSION_SAVE_PREPARATION_H_
#define CAIRN_RUNTIME_SESSION_SAVE_PREPARATION_H_

#include <cstdint>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/index.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/keeper.h"
#include "runtime/session/members.h"
#include "runtime/session/protocol.h"
#include "runtime/session/state.h"

namespace cairn {

// By rank, as State::writer_of; `inventories` say on which node each is. Not with partners: a rank's images are copied when that rank has staged,
// and those that others fill, too, are not whole by then.
std::vector<uint32_t> ChooseWriters(const Settings& settings, const std::vector<Inventory>& inventories);

// The index of every save of this state, but for the files' roots.
Result<Index> IndexOfSaves(const State& state);
// Returns it.
Result<Index> TellLayout(const State& state, Members& members);

// The keeper has begun (Keeper::GoOnFrom) with this state and its index.
Status PrepareSaves(const Bootstrap& boot, const std::vector<Inventory>& inventories, State state,
                    Members& members, Keeper& keeper);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_SAVE_PREPARATION_H_
