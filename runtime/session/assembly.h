// Assemble: what a commit needs, of what the members of a save have reported. Pure.
#ifndef CAIRN_RUNTIME_SESSION_ASSEMBLY_H_
#define CAIRN_RUNTIME_SESSION_ASSEMBLY_H_

#include <set>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/blobs.h"
#include "runtime/formats/index.h"
#include "runtime/formats/manifest.h"
#include "runtime/session/protocol.h"
#include "runtime/session/state.h"

namespace cairn {

// `records` by rank of the life that staged it, `state` what that had registered. Fills in the files' roots in `index`, and in `manifest` the
// world size, metrics and outputs; names of metrics that did not fit go to `left_out`. kInvalid, kInternal: records that do not belong together.
Result<Blobs> Assemble(const std::vector<MemberRecord>& records, const State& state, Index* index,
                       Manifest* manifest, std::set<std::string>* left_out);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_ASSEMBLY_H_
