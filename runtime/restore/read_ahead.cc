#include "runtime/restore/read_ahead.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/formats/sums.h"
#include "runtime/io/thread.h"

namespace cairn {

ReadAhead::ReadAhead(const Readable& file, uint64_t file_bytes, std::vector<uint64_t> planned)
    : file_(file), file_bytes_(file_bytes), planned_(std::move(planned)) {}

ReadAhead::~ReadAhead() { AwaitNext(); }

// Fetches the next planned blocks into next_.
void ReadAhead::BeginNext() {
  const size_t end = std::min(planned_.size(), begun_ + kWindowBlocks);
  next_.fetched = next_.Hold(std::span(planned_).subspan(begun_, end - begun_), file_bytes_);
  begun_ = end;
  if (next_.blocks.empty()) return;
  const auto fetch = [this] { next_.fetched = file_.ReadRanges(next_.blocks); };
  try {
    fetching_ = StartThread("cairn-ahead", fetch);
  } catch (const std::system_error&) {
    fetch();  // no thread is to be had
  }
}

void ReadAhead::AwaitNext() {
  if (fetching_.joinable()) fetching_.join();
}

Status ReadAhead::Window::Hold(std::span<const uint64_t> numbers, uint64_t file_bytes) {
  blocks.clear();
  taken = 0;
  const size_t room = numbers.size() * kBlockBytes;
  if (!bytes) bytes.reset(new (std::nothrow) std::byte[room]);
  if (!bytes) return {Code::kOutOfMemory, "take " + std::to_string(room) + " bytes to read a checkpoint"};
  for (const uint64_t number : numbers) {
    std::byte* const at = bytes.get() + blocks.size() * kBlockBytes;
    blocks.push_back({number * kBlockBytes, {at, BlockBytes(file_bytes, number)}});
  }
  return OkStatus();
}

Result<std::span<const std::byte>> ReadAhead::Take(uint64_t block) {
  if (asked_ == planned_.size() || planned_[asked_] != block) {
    CAIRN_RETURN_IF_ERROR(single_.Hold({&block, 1}, file_bytes_));
    CAIRN_RETURN_IF_ERROR(file_.ReadRanges(single_.blocks));
    return std::span<const std::byte>(single_.blocks.front().to);
  }
  if (asked_ == 0) BeginNext();
  if (current_.taken == current_.blocks.size()) {
    AwaitNext();
    CAIRN_RETURN_IF_ERROR(next_.fetched);
    std::swap(current_, next_);
    BeginNext();
  }
  ++asked_;
  return std::span<const std::byte>(current_.blocks[current_.taken++].to);
}

}  // namespace cairn
