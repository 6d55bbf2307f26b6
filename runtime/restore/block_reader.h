// BlockReader: the verified blocks of one file of a checkpoint. One thread.
#ifndef CAIRN_RUNTIME_RESTORE_BLOCK_READER_H_
#define CAIRN_RUNTIME_RESTORE_BLOCK_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "planner/base/status.h"
#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/restore/reader.h"

namespace cairn {

// Memory for one block, aligned for O_DIRECT.
class BlockBuffer {
 public:
  static Result<BlockBuffer> Make();
  ~BlockBuffer();
  BlockBuffer(BlockBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  BlockBuffer& operator=(BlockBuffer&&) = delete;

  std::span<std::byte> First(uint64_t bytes) const { return {data_, bytes}; }

 private:
  BlockBuffer() = default;
  std::byte* data_ = nullptr;
};

class BlockReader {
 public:
  // All stay the caller's and outlive the reader.
  BlockReader(const SourceFile& file, const LoadOptions& options, BlockBuffer& buffer, LoadStats& stats)
      : file_(file), options_(options), buffer_(buffer), stats_(stats) {}

  // Opens the file and its sums; errors as ExecuteLoad.
  Status Open();

  // The verified bytes of a block, in the buffer. kInternal when the file has no such block.
  Result<std::span<const std::byte>> ReadBlock(uint64_t block);

 private:
  Status OpenDurable();
  Result<UniqueFd> OpenOnce(const std::string& path) const;
  bool ReadNear(uint64_t block, std::span<std::byte> bytes);
  Result<Sums> ReadSumsOnce();
  Result<Sums> ReadSums(bool past_cache);
  Status ReadPastCache(std::span<std::byte> bytes, uint64_t offset);

  const SourceFile& file_;
  const LoadOptions& options_;
  BlockBuffer& buffer_;
  LoadStats& stats_;
  UniqueFd fd_;
  bool near_ = false;  // fd_ is that of the copy
  Sums sums_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_BLOCK_READER_H_
