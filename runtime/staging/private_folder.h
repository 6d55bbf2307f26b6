// The folders of the local tier: <base>/cairn-<uid>/<job>.<node>.<random>/, private to one user, each marked in use by the rank that owns it.
// Nothing here follows a link.
#ifndef CAIRN_RUNTIME_STAGING_PRIVATE_FOLDER_H_
#define CAIRN_RUNTIME_STAGING_PRIVATE_FOLDER_H_

#include <string>

#include "planner/base/status.h"
#include "runtime/io/fd.h"

namespace cairn {

enum class Presence { kMustBe, kMayBe, kMustBeNew };

// The folder `name` in the folder `parent`, made unless it must be there. kPermission when it is not ours or open to others. `path` is for
// messages.
Result<UniqueFd> OpenPrivateFolder(int parent, const std::string& name, const std::string& path,
                                   Presence presence);

// A lock on the folder itself, which goes with its owner. Others ask for it and never take it. Where the kernel has no such locks,
// everything is in use.
void MarkInUse(int folder);
bool InUse(int folder);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_PRIVATE_FOLDER_H_
