// CopyShard: a file of arrays of a checkpoint, and its checksums, once more elsewhere: in a folder or in a bucket, from either.
//
// Every block is compared with its checksum between the read and the write, so what is damaged is never copied; a copy that was made is as good as
// its source was. Memory: 64 MiB, or a little more than four parts of an object where these are larger.
//
// Blocking I/O on both stores; one thread.
#ifndef CAIRN_RUNTIME_MIRROR_SHARD_COPY_H_
#define CAIRN_RUNTIME_MIRROR_SHARD_COPY_H_

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/io/file.h"
#include "runtime/staging/pace.h"

namespace cairn {

struct ShardCopyOptions {
  FileMode mode;
  Pace* pace = nullptr;                        // of all that is copied
  std::function<void(uint64_t bytes)> copied;  // so many bytes more
  std::stop_token stop;                        // what is under way is given up, also a request
};

// `record` is the shard's, `from` and `to` the folders of the checkpoint and of the copy. Durable but for the names. kDamage: the source is not what its
// checksums say, also when it is read again; kCancelled: it was stopped; else the errors of the stores. Unless it is OK nothing of the file is left,
// save for what a store that is away keeps.
Status CopyShard(const ShardRecord& record, const std::string& from, const std::string& to,
                 const ShardCopyOptions& options);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_MIRROR_SHARD_COPY_H_
