// LoadShare: one member's own side of a restore: plans what it needs of a checkpoint, reads and verifies it, and fills the registered memory.
#ifndef CAIRN_RUNTIME_SESSION_LOADER_H_
#define CAIRN_RUNTIME_SESSION_LOADER_H_

#include <cstdint>
#include <map>
#include <string>

#include "runtime/io/hash.h"
#include "runtime/restore/reader.h"
#include "runtime/session/items.h"

namespace cairn {

// `path`: the checkpoint's folder; `index_hash`: what its manifest says. Arrays of `items` that the index lacks, or has with another type or
// shape, are kMismatch. Errors else as ExecuteLoad. After an error the memory may be partly written. Blocking; the application's thread.
// `near`: copies of shards in this node's memory, by number: they are read in the place of the checkpoint's own, and should one of them not
// hold what the checkpoint's checksums say, everything is read from the checkpoint.
Result<LoadStats> LoadShare(const std::string& path, const Hash128& index_hash,
                            const std::map<uint32_t, std::string>& near, const Items& items);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LOADER_H_
