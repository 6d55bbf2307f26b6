// ShardFile: a shard on its way to disk. Both the drain of memory and what writes through make their files with it:
//
//   1. Create each: exclusively, preallocated
//   2. write its blocks (block_writer.h), which fills in `sums`
//   3. FinishShards: each is cut to its exact size, its checksums are written, and all of them are fsynced at once
//
// Their names are durable when their folder was fsynced, which the committer does once, for all.
#ifndef CAIRN_RUNTIME_STAGING_SHARD_FILE_H_
#define CAIRN_RUNTIME_STAGING_SHARD_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/io/new_files.h"

namespace cairn {

struct ShardFile {
  uint32_t number = 0;
  std::string path;
  UniqueFd fd;
  bool direct = false;  // O_DIRECT: blocks are written in whole pages
  Sums sums;

  // In `folder`. `may_be_direct`: O_DIRECT where the file system takes it. kExists, kNoSpace and the like, with the path.
  static Result<ShardFile> Create(uint32_t number, uint64_t bytes, const std::string& folder,
                                  bool may_be_direct, NewFiles& files);
};

// Closes the shards. `folder` is where the sums go. One record per shard, in their order. A failed fsync is never retried: what it lost is lost.
Result<std::vector<ShardRecord>> FinishShards(std::vector<ShardFile>& shards, const std::string& folder,
                                              NewFiles& files);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SHARD_FILE_H_
