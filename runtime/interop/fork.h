// LinkCheckpoint: a checkpoint's files once more, without their bytes where the file system can do that.
#ifndef CAIRN_RUNTIME_INTEROP_FORK_H_
#define CAIRN_RUNTIME_INTEROP_FORK_H_

#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/interop/checkpoint_source.h"
#include "runtime/interop/new_run.h"

namespace cairn {

// How a file came to be there twice; the worst of all files.
enum class Sharing { kReflink, kHardLink, kCopy };
std::string_view SharingName(Sharing sharing);  // "reflink", "hard link", "copy"

// Gives the folder all shards and sums of the checkpoint: as a reflink (blocks are shared until one side changes), else a hard link (Cairn never
// writes into a file of a checkpoint), else a copy. The rest of the checkpoint is the result.
Result<FirstCheckpoint> LinkCheckpoint(const LoadedCheckpoint& from, const std::string& folder,
                                       Sharing* sharing);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_FORK_H_
