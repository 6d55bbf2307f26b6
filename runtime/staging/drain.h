// Drain: from a slot's images to the files of an attempt, durable. Runs on a worker thread, off the
// program's path.
//
//   1. create each image's shard (shard_file.h)
//   2. write all images out of their mappings (block_writer.h)
//   3. make the shards durable, with their checksums (shard_file.h)
//   4. mark the slot HASHED
// Where the attempt lies in a bucket, 1 to 3 are uploads (shard_upload.h). A failure removes this rank's files.
//
// Step 2 gives way to the program: it runs on a thread of low priority, and no faster than `bytes_per_second`.
// That ends the moment that somebody hurries the drain: the thread stops at the next block, and the caller's own
// writes the rest, at its own priority and as fast as it can. (A thread cannot raise its priority again.)
#ifndef CAIRN_RUNTIME_STAGING_DRAIN_H_
#define CAIRN_RUNTIME_STAGING_DRAIN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/io/file.h"
#include "runtime/io/write_engine.h"
#include "runtime/staging/drain_control.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/memory_slot.h"

namespace cairn {

struct DrainOptions {
  std::string directory;          // of the attempt; exists
  FileMode mode;                  // of the files
  bool direct = true;             // O_DIRECT where the file system takes it
  uint64_t bytes_per_second = 0;  // at most; 0 = no limit
  std::function<std::unique_ptr<WriteEngine>()> make_engine = [] { return MakeWriteEngine(Writer::kAuto); };
};

// `slot` must be staged, and stays untouched until this returns. One record per image, in the plan's order.
// kCancelled after Cancel; else the code of the call that failed, with the path and how far it got:
// kNoSpace, kPermission, kIo (a failed fsync is never retried: what it lost is lost). It returns only when no
// write is in flight any more: where the store hangs, this hangs.
Result<std::vector<ShardRecord>> Drain(MemorySlot& slot, const ImagePlan& plan, const DrainOptions& options,
                                       DrainControl& control);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_DRAIN_H_
