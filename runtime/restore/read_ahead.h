// ReadAhead: the blocks of one object, fetched before they are asked for, several at a time: one request at a time would wait for the network most
// of the time. (Of files the kernel reads ahead.)
//
// The planned blocks are fetched in windows of kWindowBlocks, the next window while this one is used. One thread.
#ifndef CAIRN_RUNTIME_RESTORE_READ_AHEAD_H_
#define CAIRN_RUNTIME_RESTORE_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/object_store.h"
#include "runtime/io/readable.h"

namespace cairn {

class ReadAhead {
 public:
  static constexpr size_t kWindowBlocks = 8;

  // `planned`: what will be asked for, in this order. `file` outlives it.
  ReadAhead(const Readable& file, uint64_t file_bytes, std::vector<uint64_t> planned);
  ~ReadAhead();  // waits for what is under way
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The block, until the next call. One that is not the next in the plan is fetched by itself.
  Result<std::span<const std::byte>> Take(uint64_t block);

 private:
  struct Window {
    std::unique_ptr<std::byte[]> bytes;
    std::vector<ObjectRange> blocks;
    size_t taken = 0;  // of blocks
    Status fetched;

    // Makes room for these blocks; of all times the first has the most of them. kOutOfMemory.
    Status Hold(std::span<const uint64_t> numbers, uint64_t file_bytes);
  };

  void BeginNext();
  void AwaitNext();

  const Readable& file_;
  const uint64_t file_bytes_;
  const std::vector<uint64_t> planned_;
  size_t begun_ = 0;  // planned blocks that are fetched or being fetched,
  size_t asked_ = 0;  // and that were taken
  Window current_, next_, single_;
  std::thread fetching_;  // next_
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_READ_AHEAD_H_
