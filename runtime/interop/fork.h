// LinkCheckpoint: a checkpoint's files once more, without their bytes where the file system can do that.
#ifndef CAIRN_RUNTIME_INTEROP_FORK_H_
#define CAIRN_RUNTIME_INTEROP_FORK_H_

#include <string>

#include "planner/base/status.h"
#include "runtime/interop/checkpoint_source.h"
#include "runtime/interop/new_run.h"
#include "runtime/interop/share_file.h"

namespace cairn {

// Gives the folder all shards and sums of the checkpoint by ShareFile; `sharing` is the worst of all. The rest of the checkpoint is the result.
Result<FirstCheckpoint> LinkCheckpoint(const LoadedCheckpoint& from, const std::string& folder,
                                       Sharing* sharing);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_FORK_H_
