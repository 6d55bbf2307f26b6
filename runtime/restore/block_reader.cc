#include "runtime/restore/block_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/io/file.h"
#include "runtime/io/stores.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

// Read and hashed at a time: what the one wrote the other finds in the CPU's cache.
constexpr size_t kChunkBytes = 256 << 10;

// Repeats `attempt` while it finds a file missing or short, until the attribute cache of a network client must have caught up. The last
// answer stands.
template <typename Attempt>
auto RetryWhileUnseen(std::chrono::milliseconds bound, Attempt attempt) {
  const auto until = Clock::now() + bound;
  for (auto pause = std::chrono::milliseconds(5);; pause *= 2) {
    auto result = attempt();
    const Code code = result.status().code();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (result.ok() || (code != Code::kNotFound && code != Code::kDamage) || left.count() <= 0) return result;
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

// What it means that a file named by a valid manifest is not there.
Status Missing(const std::string& path) {
  if (IsObjectPath(path)) return {Code::kDamage, path + " is missing"};
  const std::string folder = path.substr(0, path.rfind('/'));
  if (access(folder.c_str(), F_OK) != 0) {
    return {Code::kIo, folder + " cannot be seen on this node: is its file system mounted here?"};
  }
  return {Code::kDamage, path + " is missing"};
}

}  // namespace

Result<BlockBuffer> BlockBuffer::Make() {
  void* data = mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return Status::FromErrno(errno, "take 4 MiB to read a checkpoint");
  BlockBuffer buffer;
  buffer.data_ = static_cast<std::byte*>(data);
  return buffer;
}

std::span<std::byte> BlockBuffer::room() const { return {data_, kBlockBytes}; }

BlockBuffer::~BlockBuffer() {
  if (data_ != nullptr) munmap(data_, kBlockBytes);
}

Status BlockReader::Open(std::vector<uint64_t> planned) {
  if (!file_.near.empty()) {
    if (auto copy = OpenOnce(file_.near); copy.ok()) near_ = *std::move(copy);
  }
  if (!near_) CAIRN_RETURN_IF_ERROR(OpenDurable(std::move(planned)));
  if (!has_sums()) return OkStatus();
  Result<Sums> sums = RetryWhileUnseen(options_.attribute_cache_bound, [&] { return ReadSumsOnce(); });
  if (sums.status().code() == Code::kNotFound) return Missing(file_.sums_path);
  CAIRN_ASSIGN_OR_RETURN(sums_, std::move(sums));
  return OkStatus();
}

Status BlockReader::OpenDurable(std::vector<uint64_t> planned) {
  if (durable_) return OkStatus();
  auto opened = RetryWhileUnseen(options_.attribute_cache_bound, [&] { return OpenOnce(file_.path); });
  if (opened.status().code() == Code::kNotFound) return Missing(file_.path);
  CAIRN_ASSIGN_OR_RETURN(durable_, std::move(opened));
  durable_->ExpectInOrder();
  if (IsObjectPath(file_.path)) ahead_.emplace(*durable_, file_.size_bytes, std::move(planned));
  return OkStatus();
}

// The hash of the block, whose bytes are now in parts_.
Result<Hash128> BlockReader::ReadParts(const Readable& file, uint64_t block) {
  Hasher128 hash;
  uint64_t at = block * kBlockBytes;
  for (std::span<std::byte> part : parts_) {
    for (; !part.empty(); part = part.subspan(std::min(part.size(), kChunkBytes))) {
      const std::span<std::byte> chunk = part.first(std::min(part.size(), kChunkBytes));
      CAIRN_RETURN_IF_ERROR(file.Read(at, chunk));
      hash.Update(chunk);
      at += chunk.size();
    }
  }
  return hash.Finish();
}

// The same, of a block that was read ahead.
Result<Hash128> BlockReader::TakeParts(uint64_t block) {
  CAIRN_ASSIGN_OR_RETURN(std::span<const std::byte> bytes, ahead_->Take(block));
  const Hash128 hash = Hash128Of(bytes);
  for (const std::span<std::byte> part : parts_) {
    std::copy_n(bytes.begin(), part.size(), part.begin());
    bytes = bytes.subspan(part.size());
  }
  return hash;
}

// Whether the copy has the block as it must be.
bool BlockReader::ReadNear(uint64_t block, uint64_t bytes) {
  const auto found = ReadParts(*near_, block);
  if (!found.ok()) return false;
  stats_.read_bytes += bytes;
  stats_.near_bytes += bytes;
  return *found == sums_.blocks[block];
}

Result<std::span<const std::byte>> BlockReader::ReadBlock(uint64_t block, std::span<std::byte> room,
                                                          std::span<const Diversion> diversions) {
  if (block >= BlockCount(file_.size_bytes))
    return Status(Code::kInternal, "the load plan reads block " + std::to_string(block) + " of " +
                                       file_.path + ", which has " +
                                       std::to_string(BlockCount(file_.size_bytes)));
  const std::span<std::byte> bytes = room.first(BlockBytes(file_.size_bytes, block));
  parts_.clear();
  size_t at = 0;
  for (const Diversion& diversion : diversions) {
    parts_.push_back(bytes.subspan(at, diversion.begin - at));
    parts_.push_back(diversion.to);
    at = diversion.begin + diversion.to.size();
  }
  parts_.push_back(bytes.subspan(at));
  if (near_ && ReadNear(block, bytes.size())) {
    ++stats_.blocks_verified;
    return std::span<const std::byte>(bytes);
  }
  CAIRN_RETURN_IF_ERROR(OpenDurable({}));
  CAIRN_ASSIGN_OR_RETURN(const Hash128 first, ahead_ ? TakeParts(block) : ReadParts(*durable_, block));
  stats_.read_bytes += bytes.size();
  if (!has_sums()) return std::span<const std::byte>(bytes);
  if (first != sums_.blocks[block]) {
    const uint64_t offset = block * kBlockBytes;
    // From the store itself, so that a page spoilt in this node's memory does not condemn the file.
    CAIRN_RETURN_IF_ERROR(durable_->ReadAgain(offset, bytes, room.size()));
    stats_.read_bytes += bytes.size();
    ++stats_.blocks_read_twice;
    if (const Hash128 found = Hash128Of(std::span<const std::byte>(bytes)); found != sums_.blocks[block]) {
      return Status(Code::kDamage, file_.path + ": block " + std::to_string(block) + " (" +
                                       std::to_string(bytes.size()) + " bytes at offset " +
                                       std::to_string(offset) + ") was read twice and has checksum " +
                                       found.ToHex() + " instead of " + sums_.blocks[block].ToHex());
    }
    for (const Diversion& diversion : diversions)
      std::memcpy(diversion.to.data(), bytes.data() + diversion.begin, diversion.to.size());
  }
  ++stats_.blocks_verified;
  return std::span<const std::byte>(bytes);
}

Result<std::unique_ptr<Readable>> BlockReader::OpenOnce(const std::string& path) const {
  CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<Readable> file, Readable::Open(path));
  CAIRN_ASSIGN_OR_RETURN(const uint64_t bytes, file->Bytes());
  if (bytes != file_.size_bytes) {
    return Status(Code::kDamage, path + " has " + std::to_string(bytes) + " bytes instead of " +
                                     std::to_string(file_.size_bytes));
  }
  return file;
}

Result<Sums> BlockReader::ReadSumsOnce() {
  Status status = OkStatus();
  for (int attempt = 0; attempt < 2; ++attempt) {
    Result<Sums> sums = ReadSums(attempt > 0);
    if (sums.ok() || sums.status().code() != Code::kDamage) return sums;
    status = sums.status();
  }
  return status;
}

Result<Sums> BlockReader::ReadSums(bool past_cache) {
  if (past_cache) DropCached(file_.sums_path);
  CAIRN_ASSIGN_OR_RETURN(const std::string bytes,
                         ReadAll(file_.sums_path, EncodedSumsBytes(file_.size_bytes)));
  Result<Sums> sums = DecodeSums(bytes);
  if (!sums.ok()) return sums.status().Annotate(file_.sums_path);
  if (sums->file_bytes != file_.size_bytes || sums->Root() != file_.sums_root) {
    return Status(Code::kDamage, file_.sums_path + " does not belong to this checkpoint: its root is " +
                                     sums->Root().ToHex() + ", the index says " + file_.sums_root.ToHex());
  }
  return sums;
}

}  // namespace cairn
