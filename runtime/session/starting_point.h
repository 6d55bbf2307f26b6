// StartingPoint: what a new run begins from, as --checkpoint-from names it. Blocking I/O; one thread.
//
//   DIR, DIR@STEP, DIR@TAG    a checkpoint of another run (catalog/target.h)
//   FOLDER, FILE              a foreign state (interop/foreign.h)
//   …:only=PATTERN[,PATTERN]  of that, the items whose names in the program match; all others stay as the program makes them, and steps are
//                             counted anew
//   …:weights                 the same as …:only=model.*
#ifndef CAIRN_RUNTIME_SESSION_STARTING_POINT_H_
#define CAIRN_RUNTIME_SESSION_STARTING_POINT_H_

#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

// What `text` names now. kInvalid, kNotFound and others say what is wrong with which part.
Result<Origin> FindOrigin(const std::string& text);

// OK when a run that began from `origin` was asked to begin from what `text` names. A directory alone may have newer checkpoints by now.
Status CheckOrigin(const std::string& text, const Origin& origin);

// For people: path@checkpoint, or the path alone, with the choice.
std::string OriginTitle(const Origin& origin);

// Origin::only as patterns.
std::vector<std::string> PatternsOf(const Origin& origin);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_STARTING_POINT_H_
