// BlockReader: the blocks of one file of a checkpoint, verified if it has sums. One thread.
#ifndef CAIRN_RUNTIME_RESTORE_BLOCK_READER_H_
#define CAIRN_RUNTIME_RESTORE_BLOCK_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/sums.h"
#include "runtime/io/readable.h"
#include "runtime/restore/read_ahead.h"
#include "runtime/restore/reader.h"

namespace cairn {

// Memory for one block, aligned for O_DIRECT.
class BlockBuffer {
 public:
  static Result<BlockBuffer> Make();
  ~BlockBuffer();
  BlockBuffer(BlockBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  BlockBuffer& operator=(BlockBuffer&&) = delete;

  std::span<std::byte> room() const;

 private:
  BlockBuffer() = default;
  std::byte* data_ = nullptr;
};

// A part of a block that goes elsewhere than into the buffer: straight to its place in the program's memory.
struct Diversion {
  uint64_t begin = 0;  // from the block's start
  std::span<std::byte> to;
};

class BlockReader {
 public:
  // All stay the caller's and outlive the reader.
  BlockReader(const SourceFile& file, const LoadOptions& options, LoadStats& stats)
      : file_(file), options_(options), stats_(stats) {}

  // Opens the file, and its sums if it has any; errors as ExecuteLoad. `planned`: the blocks that will be read, in this order; of an object they are
  // read ahead.
  Status Open(std::vector<uint64_t> planned);

  // The bytes of a block: in `room` (of a whole block, aligned for O_DIRECT), each where it lies in the block, and those of `diversions`
  // where these say (in order, disjoint, inside the block). kInternal when the file has no such block.
  Result<std::span<const std::byte>> ReadBlock(uint64_t block, std::span<std::byte> room,
                                               std::span<const Diversion> diversions = {});

 private:
  bool has_sums() const { return !file_.sums_path.empty(); }
  Status OpenDurable(std::vector<uint64_t> planned);
  Result<std::unique_ptr<Readable>> OpenOnce(const std::string& path) const;
  Result<Hash128> ReadParts(const Readable& file, uint64_t block);
  Result<Hash128> TakeParts(uint64_t block);
  bool ReadNear(uint64_t block, uint64_t bytes);
  Result<Sums> ReadSumsOnce();
  Result<Sums> ReadSums(bool past_cache);

  const SourceFile& file_;
  const LoadOptions& options_;
  LoadStats& stats_;
  std::unique_ptr<Readable> near_;  // the copy; null: there is none
  std::unique_ptr<Readable>
      durable_;  // where there is a copy: opened when one of its blocks is not what it must be
  std::optional<ReadAhead> ahead_;  // of an object; goes before it
  Sums sums_;
  std::vector<std::span<std::byte>> parts_;  // of the block that is being read, in its order
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_BLOCK_READER_H_
