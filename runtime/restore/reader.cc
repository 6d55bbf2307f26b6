#include "runtime/restore/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <thread>
#include <utility>

#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/io/file.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

// Memory for one block, aligned for O_DIRECT.
class BlockBuffer {
 public:
  static Result<BlockBuffer> Make() {
    void* data = mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return Status::FromErrno(errno, "take 4 MiB to read a checkpoint");
    BlockBuffer buffer;
    buffer.data_ = static_cast<std::byte*>(data);
    return buffer;
  }
  ~BlockBuffer() {
    if (data_ != nullptr) munmap(data_, kBlockBytes);
  }
  BlockBuffer(BlockBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  BlockBuffer& operator=(BlockBuffer&&) = delete;

  std::span<std::byte> First(uint64_t bytes) const { return {data_, bytes}; }

 private:
  BlockBuffer() = default;
  std::byte* data_ = nullptr;
};

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
  const std::string folder = path.substr(0, path.rfind('/'));
  if (access(folder.c_str(), F_OK) != 0) {
    return {Code::kIo, folder + " cannot be seen on this node: is its file system mounted here?"};
  }
  return {Code::kDamage, path + " is missing"};
}

class SourceReader {
 public:
  SourceReader(const SourceFile& file, const LoadOptions& options, BlockBuffer& buffer, LoadStats& stats)
      : file_(file), options_(options), buffer_(buffer), stats_(stats) {}

  Status Open() {
    const auto bound = options_.attribute_cache_bound;
    Result<UniqueFd> opened = RetryWhileUnseen(bound, [&] { return OpenOnce(); });
    if (opened.status().code() == Code::kNotFound) return Missing(file_.path);
    CAIRN_ASSIGN_OR_RETURN(fd_, std::move(opened));
    // Enough: asking for blocks ahead (POSIX_FADV_WILLNEED) halves the speed of cold reads.
    posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Result<Sums> sums = RetryWhileUnseen(bound, [&] { return ReadSumsOnce(); });
    if (sums.status().code() == Code::kNotFound) return Missing(file_.sums_path);
    CAIRN_ASSIGN_OR_RETURN(sums_, std::move(sums));
    return OkStatus();
  }

  // The verified bytes of a block, in the buffer.
  Result<std::span<const std::byte>> ReadBlock(uint64_t block) {
    const uint64_t offset = block * kBlockBytes;
    const std::span<std::byte> bytes = buffer_.First(BlockBytes(file_.size_bytes, block));
    CAIRN_RETURN_IF_ERROR(PreadFull(fd_.get(), bytes, offset, file_.path));
    stats_.read_bytes += bytes.size();
    if (Hash128Of(std::span<const std::byte>(bytes)) != sums_.blocks[block]) {
      CAIRN_RETURN_IF_ERROR(ReadPastCache(bytes, offset));
      stats_.read_bytes += bytes.size();
      ++stats_.blocks_read_twice;
      if (const Hash128 found = Hash128Of(std::span<const std::byte>(bytes)); found != sums_.blocks[block]) {
        return Status(Code::kDamage, file_.path + ": block " + std::to_string(block) + " (" +
                                         std::to_string(bytes.size()) + " bytes at offset " +
                                         std::to_string(offset) + ") was read twice and has checksum " +
                                         found.ToHex() + " instead of " + sums_.blocks[block].ToHex());
      }
    }
    ++stats_.blocks_verified;
    return std::span<const std::byte>(bytes);
  }

 private:
  Result<UniqueFd> OpenOnce() {
    CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(file_.path, O_RDONLY));
    struct stat st;
    if (fstat(fd.get(), &st) != 0) return Status::FromErrno(errno, "stat " + file_.path);
    if (static_cast<uint64_t>(st.st_size) != file_.size_bytes) {
      return Status(Code::kDamage, file_.path + " has " + std::to_string(st.st_size) + " bytes instead of " +
                                       std::to_string(file_.size_bytes));
    }
    return fd;
  }

  Result<Sums> ReadSumsOnce() {
    Status status = OkStatus();
    for (int attempt = 0; attempt < 2; ++attempt) {
      Result<Sums> sums = ReadSums(attempt > 0);
      if (sums.ok() || sums.status().code() != Code::kDamage) return sums;
      status = sums.status();
    }
    return status;
  }

  Result<Sums> ReadSums(bool past_cache) {
    if (past_cache) {
      CAIRN_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(file_.sums_path, O_RDONLY));
      posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
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

  // From the store itself if the file system lets us, so that a page spoilt in this node's memory does not condemn the file.
  Status ReadPastCache(std::span<std::byte> bytes, uint64_t offset) {
    if (Result<UniqueFd> direct = OpenFile(file_.path, O_RDONLY | O_DIRECT); direct.ok()) {
      // The buffer is a whole block: the last one is asked for in full and comes short.
      const ssize_t n = pread(direct->get(), bytes.data(), kBlockBytes, static_cast<off_t>(offset));
      if (n == static_cast<ssize_t>(bytes.size())) return OkStatus();
    }
    posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes.size()),
                  POSIX_FADV_DONTNEED);
    return PreadFull(fd_.get(), bytes, offset, file_.path);
  }

  const SourceFile& file_;
  const LoadOptions& options_;
  BlockBuffer& buffer_;
  LoadStats& stats_;
  UniqueFd fd_;
  Sums sums_;
};

// The copies of the ranges of one file, by the position of their first byte.
Result<std::vector<WindowedCopy>> PrepareCopies(std::span<const ReadRange> ranges,
                                                const std::vector<Destination>& destinations) {
  std::vector<WindowedCopy> copies;
  for (const ReadRange& range : ranges) {
    for (const CopyOut& out : range.copies) {
      if (out.wanted >= destinations.size() || !destinations[out.wanted].box.Contains(out.region)) {
        return Status(Code::kInternal,
                      "the load plan wants " + out.region.ToString() + ", which no destination holds");
      }
      const Destination& to = destinations[out.wanted];
      int64_t at = 0;
      for (int d = 0; d < out.region.rank(); ++d)
        at += (out.region.offset[d] - to.box.offset[d]) * to.stride_bytes[d];
      copies.emplace_back(
          StridedCopy::Make(out.region.extent, to.element_bytes, out.source_stride, to.stride_bytes),
          range.offset + out.source_offset, to.data + at);
    }
  }
  std::sort(copies.begin(), copies.end(), [](const WindowedCopy& a, const WindowedCopy& b) {
    return a.next_position() < b.next_position();
  });
  return copies;
}

Status LoadFile(const SourceFile& file, std::span<const ReadRange> ranges,
                const std::vector<Destination>& destinations, const LoadOptions& options, BlockBuffer& buffer,
                LoadStats& stats) {
  CAIRN_ASSIGN_OR_RETURN(std::vector<WindowedCopy> copies, PrepareCopies(ranges, destinations));
  SourceReader reader(file, options, buffer, stats);
  CAIRN_RETURN_IF_ERROR(reader.Open());
  size_t begun = 0;                    // copies before this one have begun
  std::vector<WindowedCopy*> running;  // begun and not done
  uint64_t next_block = 0;
  for (const ReadRange& range : ranges) {
    const uint64_t end = range.offset + range.bytes;
    if (end > file.size_bytes) {
      return {Code::kInternal, "the load plan reads " + file.path + " up to byte " + std::to_string(end) +
                                   " of " + std::to_string(file.size_bytes)};
    }
    for (uint64_t block = std::max(next_block, range.offset / kBlockBytes); block * kBlockBytes < end;
         ++block) {
      CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, reader.ReadBlock(block));
      const uint64_t begin = block * kBlockBytes;
      while (begun < copies.size() && copies[begun].next_position() < begin + bytes.size())
        running.push_back(&copies[begun++]);
      std::erase_if(running, [&](WindowedCopy* copy) {
        copy->Feed(bytes.data(), begin, begin + bytes.size());
        return copy->done();
      });
      next_block = block + 1;
    }
  }
  if (begun < copies.size() || !running.empty()) {
    return {Code::kInternal, "the load plan copies from parts of " + file.path + " that it does not read"};
  }
  return OkStatus();
}

}  // namespace

Result<LoadStats> ExecuteLoad(const LoadPlan& plan, const std::vector<SourceFile>& files,
                              const std::vector<Destination>& destinations, const LoadOptions& options) {
  const auto start = Clock::now();
  CAIRN_ASSIGN_OR_RETURN(BlockBuffer buffer, BlockBuffer::Make());
  LoadStats stats;
  stats.needed_bytes = plan.needed_bytes;
  const std::span<const ReadRange> ranges(plan.ranges);
  for (size_t first = 0; first < ranges.size();) {
    size_t last = first;
    while (last < ranges.size() && ranges[last].file == ranges[first].file) ++last;
    const uint32_t file = ranges[first].file;
    if (file >= files.size())
      return Status(Code::kInternal, "the load plan reads file " + std::to_string(file) + " of " +
                                         std::to_string(files.size()));
    CAIRN_RETURN_IF_ERROR(
        LoadFile(files[file], ranges.subspan(first, last - first), destinations, options, buffer, stats));
    first = last;
  }
  stats.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return stats;
}

}  // namespace cairn
