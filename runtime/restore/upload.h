// Upload: brings what a restore has read to device memory. Bytes are packed into pinned buffers, which the device reads while the next block is read
// from the file: so the caller's memory is free again at once.
//
// Threads: Put any; the others the one that made it, when no Put is under way. Errors: kUnavailable, of the device; kOutOfMemory.
#ifndef CAIRN_RUNTIME_RESTORE_UPLOAD_H_
#define CAIRN_RUNTIME_RESTORE_UPLOAD_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "planner/base/box.h"
#include "planner/base/status.h"
#include "runtime/staging/device.h"
#include "runtime/staging/mapping.h"

namespace cairn {

class Upload {
 public:
  // What is put comes after what the application's streams hold now.
  static Result<std::unique_ptr<Upload>> Make(const Device& device);
  ~Upload();  // waits for what is under way

  // The bytes [begin, end) of a box in row-major order, not more than a block has. `src_origin`: from src to where the box's first element lies or
  // would lie; `first`: its place on the device.
  Status Put(const Dims& extent, int64_t element_bytes, const Dims& src_stride, const std::byte* src,
             int64_t src_origin, const Dims& device_stride, std::byte* first, uint64_t begin, uint64_t end);

  // Waits until all that was put is there.
  Status Finish() { return device_.WaitAll(); }

 private:
  struct Buffer {
    Mapping memory;
    Device::Mark read;  // by the device
  };
  explicit Upload(const Device& device) : device_(device), pins_(device) {}

  const Device& device_;
  std::deque<Buffer> buffers_;
  Device::Pins pins_;  // goes before the buffers

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Buffer*> idle_;  // guarded by mutex_; the one that was filled first is in front
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_UPLOAD_H_
