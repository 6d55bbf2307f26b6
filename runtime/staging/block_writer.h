// BlockWriter: writes the blocks of some shards through an engine (runtime/io/write_engine.h), as many at a time as it takes, hashing each
// just before, so that the hash of one runs while others are written.
//
// O_DIRECT goes where ShardFile::direct says; a file system that refuses it at the first write is written through the page cache.
//
// One thread at a time; another one may go on where one has stopped.
#ifndef CAIRN_RUNTIME_STAGING_BLOCK_WRITER_H_
#define CAIRN_RUNTIME_STAGING_BLOCK_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/write_engine.h"
#include "runtime/staging/drain_control.h"
#include "runtime/staging/pace.h"
#include "runtime/staging/shard_file.h"

namespace cairn {

class BlockWriter {
 public:
  struct Options {
    std::function<std::unique_ptr<WriteEngine>()> make_engine;
    uint64_t bytes_per_second = 0;  // at most; 0 = no limit
    // The content of a block: whole pages, which stay as they are until the block is written. `place` tells those apart that are written at
    // the same time.
    std::function<const std::byte*(size_t shard, uint64_t block, size_t place)> content;
    size_t places = SIZE_MAX;  // so many blocks at a time, at most
  };

  // All outlive it.
  BlockWriter(std::vector<ShardFile>& shards, const Options& options, DrainControl& control)
      : shards_(shards), options_(options), control_(control), pace_(options.bytes_per_second) {}

  // Writes what is left, and fills in the sums. `gently`: at the given pace, and stops when the drain is hurried.
  void Run(bool gently);

  bool done() const { return !failure_.ok() || shard_ == shards_.size(); }
  // kCancelled after Cancel; else the code of the write that failed, with the path and where.
  const Status& failure() const { return failure_; }

 private:
  struct Sent {
    size_t shard = 0;
    uint64_t block = 0;
    const std::byte* content = nullptr;
    bool direct = false;
  };

  size_t Bytes(size_t shard, uint64_t block) const {
    return BlockBytes(shards_[shard].sums.file_bytes, block);
  }
  bool ItsTurn(WriteEngine& engine);
  void SendNext(WriteEngine& engine);
  void Send(size_t place, WriteEngine& engine);
  void Take(const BlockDone& finished, WriteEngine& engine);

  std::vector<ShardFile>& shards_;
  const Options& options_;
  DrainControl& control_;
  Pace pace_;
  size_t shard_ = 0;                     // the next block to be sent,
  uint64_t block_ = 0;                   // in this shard,
  std::optional<Pace::TimePoint> turn_;  // and when its turn is
  std::vector<Sent> sent_;               // by place, which is the engine's tag
  std::vector<size_t> free_;             // places
  Status failure_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_BLOCK_WRITER_H_
