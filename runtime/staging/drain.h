// Drain: from a slot's images to the files of an attempt, durable. Runs on a worker thread, off the
// program's path.
//
//   1. for each image: create the shard exclusively, preallocate it
//   2. write all images out of their mappings in blocks of 4 MiB, as many at a time as the engine takes
//      (runtime/io/write_engine.h), hashing each block just before (XXH3-128), so that the hash of one runs
//      while others are written: with O_DIRECT where the file system takes it, else through the page cache
//   3. for each image: cut the shard to its exact size, fsync; write its sums file, fsync
//   4. mark the slot HASHED
// The entries of the new files in the attempt's directory become durable with the directory's fsync, which
// the committer makes once, after all records are in and before the manifest's rename. A failure removes this
// rank's files.
//
// Step 2 gives way to the program: it runs on a thread of low priority, and no faster than `bytes_per_second`.
// That ends the moment that somebody hurries the drain: the thread stops at the next block, and the caller's own
// writes the rest, at its own priority and as fast as it can. (A thread cannot raise its priority again.)
#ifndef CAIRN_RUNTIME_STAGING_DRAIN_H_
#define CAIRN_RUNTIME_STAGING_DRAIN_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/io/file.h"
#include "runtime/io/write_engine.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/pace.h"

namespace cairn {

// How others steer and watch one drain. Any thread.
class DrainControl {
 public:
  void Cancel();  // it ends soon, with kCancelled; for good
  void Hurry();   // limit and priority count no more; for good
  bool cancelled() const { return cancelled_; }
  bool hurried() const { return hurried_; }

  uint64_t bytes_written() const { return bytes_written_; }
  std::string_view writer() const { return writer_.load(); }  // WriteEngine::name(); "" = none yet

  // The drain's side.
  void SleepUntil(Pace::TimePoint when);  // or until somebody cancels or hurries
  void AddWritten(uint64_t bytes) { bytes_written_ += bytes; }
  void SetWriter(std::string_view literal) { writer_ = literal.data(); }

 private:
  std::mutex mutex_;  // orders the flags' changes with the sleep
  std::condition_variable changed_;
  std::atomic<bool> cancelled_{false}, hurried_{false};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<const char*> writer_{""};
};

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
