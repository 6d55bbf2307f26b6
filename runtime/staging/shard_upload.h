// ShardUpload: the images of a rank on their way to a bucket. What shard_file.h and block_writer.h are where there are files:
//
//   1. Begin an upload for each shard
//   2. Run: send its parts straight out of the image, hashing the blocks that end in each just before, so that the hash of one runs while others are
//      under way. Parts (ObjectUpload::part_bytes) and blocks (4 MiB, the unit of checksums) need not end together
//   3. Finish: the sums are put and the uploads finished, all at once. Before that nothing of a shard can be seen
//
// What is not finished is given up with the object. One thread at a time; another one may go on where one has stopped. A request that is under way
// when the drain is cancelled is given up at once; what the store holds of the uploads then goes with the attempt.
#ifndef CAIRN_RUNTIME_STAGING_SHARD_UPLOAD_H_
#define CAIRN_RUNTIME_STAGING_SHARD_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/formats/sums.h"
#include "runtime/io/new_files.h"
#include "runtime/io/object_store.h"
#include "runtime/staging/drain_control.h"
#include "runtime/staging/pace.h"

namespace cairn {

class ShardUpload {
 public:
  // `folder`: of the attempt, in a bucket. `bytes_per_second`: at most; 0 = no limit. `control` outlives it.
  ShardUpload(std::string folder, uint64_t bytes_per_second, DrainControl& control)
      : folder_(std::move(folder)), control_(control), pace_(bytes_per_second) {
    control_.OnCancel([this] { CancelUploads(); });
  }
  ~ShardUpload() { control_.OnCancel(nullptr); }
  ShardUpload(const ShardUpload&) = delete;
  ShardUpload& operator=(const ShardUpload&) = delete;

  // The image stays as it is until Finish or the destructor has returned. The store's errors.
  Status Begin(uint32_t number, std::span<const std::byte> image);

  // Sends what is left. `gently`: at the given pace, and stops when the drain is hurried.
  void Run(bool gently);
  bool done() const { return !failure_.ok() || next_ == shards_.size(); }
  // kCancelled after Cancel; else the error of the store.
  const Status& failure() const { return failure_; }

  // One record per shard, in the order of Begin. The objects are added to `files` before they are made.
  Result<std::vector<ShardRecord>> Finish(NewFiles& files);

 private:
  struct Shard {
    uint32_t number = 0;
    std::string path;
    std::span<const std::byte> image;
    std::unique_ptr<ObjectUpload> upload;
    Sums sums;
    uint64_t hashed = 0;  // blocks
  };

  Status SendNext(bool gently);
  void CancelUploads();
  Status Note(Status status);

  const std::string folder_;
  DrainControl& control_;
  Pace pace_;
  std::mutex mutex_;  // orders the growth of shards_ with Cancel
  std::vector<Shard> shards_;
  size_t next_ = 0;  // the next part to be sent, of this shard
  uint64_t part_ = 0;
  Status failure_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_SHARD_UPLOAD_H_
