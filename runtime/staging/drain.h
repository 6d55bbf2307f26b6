// Drain: from a slot's images to the files of an attempt, durable. Runs on a worker thread, off the
// program's path.
//
// For each image, in order:
//   1. create the shard exclusively, preallocate it
//   2. write it out of the mapping in blocks of 4 MiB, hashing each block before it is written (XXH3-128):
//      with O_DIRECT where the file system takes it, else through the page cache
//   3. cut it to its exact size, fsync
//   4. write its sums file, fsync
//   5. after the last image: mark the slot HASHED
// The entries of the new files in the attempt's directory become durable with the directory's fsync, which
// the committer makes once, after all records are in and before the manifest's rename. A failure removes this
// rank's files.
#ifndef CAIRN_RUNTIME_STAGING_DRAIN_H_
#define CAIRN_RUNTIME_STAGING_DRAIN_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/io/file.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/slot.h"

namespace cairn {

// Shared with the threads that watch and cancel a drain. Counts from 0.
struct DrainProgress {
  std::atomic<bool> cancel{false};
  std::atomic<uint64_t> bytes_written{0};
};

struct DrainOptions {
  std::string directory;  // of the attempt; exists
  FileMode mode;          // of the files
  bool direct = true;     // O_DIRECT where the file system takes it
};

// `slot` must be staged, and stays untouched until this returns. One record per image, in the plan's order.
// kCancelled after `cancel`; else the code of the call that failed, with the path and how far it got:
// kNoSpace, kPermission, kIo (a failed fsync is never retried: what it lost is lost).
Result<std::vector<ShardRecord>> Drain(Slot& slot, const ImagePlan& plan, const DrainOptions& options,
                                       DrainProgress& progress);

// Lowers the calling thread's priority, so that the program's own threads come first. A worker calls it once.
void YieldToComputeThreads();

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_DRAIN_H_
