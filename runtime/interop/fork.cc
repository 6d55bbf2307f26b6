#include "runtime/interop/fork.h"

#include <algorithm>

#include "runtime/formats/names.h"

namespace cairn {

Result<FirstCheckpoint> LinkCheckpoint(const LoadedCheckpoint& from, const std::string& folder,
                                       Sharing* sharing) {
  *sharing = Sharing::kReflink;
  for (const ShardRecord& file : from.index.files) {
    for (const std::string& name : {names::Shard(file.number), names::Sums(file.number)}) {
      CAIRN_ASSIGN_OR_RETURN(const Sharing how, ShareFile(from.path + "/" + name, folder + "/" + name));
      *sharing = std::max(*sharing, how);
    }
  }
  return FirstCheckpoint{from.index, from.blobs, from.manifest};
}

}  // namespace cairn
