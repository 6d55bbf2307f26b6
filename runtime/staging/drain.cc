#include "runtime/staging/drain.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/staging/mapping.h"

namespace cairn {
namespace {

// The files of one drain, removed again unless it succeeds.
class NewFiles {
 public:
  explicit NewFiles(FileMode mode) : mode_(mode) {}
  ~NewFiles() {
    for (const std::string& path : paths_) static_cast<void>(RemoveFile(path));
  }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  Result<UniqueFd> Create(const std::string& path) {
    CAIRN_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
    paths_.push_back(path);
    if (mode_ && fchmod(file.get(), static_cast<mode_t>(*mode_)) != 0)
      return Status::FromErrno(errno, "chmod " + path);
    return file;
  }
  void Keep() { paths_.clear(); }

 private:
  FileMode mode_;
  std::vector<std::string> paths_;
};

// Set after creation: open(2) with O_DIRECT leaves the new file behind where the file system refuses the flag.
bool SetDirect(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

Status Preallocate(int fd, uint64_t bytes, const std::string& path) {
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return OkStatus();
  // It saves extents and tells early that the space is not there; where it does not exist, the writes will tell.
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EINTR) return OkStatus();
  return Status::FromErrno(errno, "reserve " + std::to_string(bytes) + " bytes for " + path);
}

// Steps 1 to 3. Blocks are taken by two threads, so that one hashes while the other's write is on its way.
class ShardWriter {
 public:
  ShardWriter(const std::byte* data, uint64_t bytes, const std::string& path, DrainProgress& progress)
      : data_(data), path_(path), progress_(progress) {
    sums_.file_bytes = bytes;
    sums_.blocks.resize(BlockCount(bytes));
  }

  Result<Sums> Write(NewFiles& files, bool direct) && {
    CAIRN_ASSIGN_OR_RETURN(file_, files.Create(path_));
    CAIRN_RETURN_IF_ERROR(Preallocate(file_.get(), sums_.file_bytes, path_));
    direct_ = direct && SetDirect(file_.get(), true);
    {
      std::jthread helper;
      if (sums_.blocks.size() > 1) {
        try {
          helper = std::jthread([this] { WriteBlocks(); });
        } catch (const std::system_error&) {
          // No thread is to be had: this one does it all.
        }
      }
      WriteBlocks();
    }
    CAIRN_RETURN_IF_ERROR(failure_);
    // The last block was written in whole pages if it went past the page cache.
    if (direct && ftruncate(file_.get(), static_cast<off_t>(sums_.file_bytes)) != 0) {
      return Status::FromErrno(errno, "cut " + path_);
    }
    CAIRN_RETURN_IF_ERROR(SyncFile(file_.get(), path_));
    CAIRN_RETURN_IF_ERROR(std::move(file_).Close(path_));
    return std::move(sums_);
  }

 private:
  void WriteBlocks() {
    while (!stop_) {
      const uint64_t block = next_++;
      if (block >= sums_.blocks.size()) return;
      Status status =
          progress_.cancel ? Status(Code::kCancelled, "write " + path_ + ": cancelled") : WriteBlock(block);
      if (status.ok()) continue;
      stop_ = true;
      const std::lock_guard lock(mutex_);
      if (failure_.ok()) failure_ = std::move(status);
    }
  }

  Status WriteBlock(uint64_t block) {
    const uint64_t offset = block * kBlockBytes;
    const std::span<const std::byte> content(data_ + offset, BlockBytes(sums_.file_bytes, block));
    sums_.blocks[block] = Hash128Of(content);
    Status written(Code::kInvalid, "");
    if (direct_) {
      // O_DIRECT wants whole pages; the mapping has them.
      written = PwriteFull(file_.get(), {content.data(), WholePages(content.size())}, offset, path_);
      if (written.code() == Code::kInvalid) direct_ = !SetDirect(file_.get(), false);
    }
    if (written.code() == Code::kInvalid) written = PwriteFull(file_.get(), content, offset, path_);
    CAIRN_RETURN_IF_ERROR(written);
    progress_.bytes_written += content.size();
    return OkStatus();
  }

  const std::byte* const data_;
  const std::string& path_;
  DrainProgress& progress_;
  UniqueFd file_;
  Sums sums_;  // each block's hash is written by the thread that took the block
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> direct_{false};
  std::mutex mutex_;
  Status failure_;  // guarded by mutex_ while both threads are at work
};

// Step 4.
Status WriteSums(const Sums& sums, const std::string& path, NewFiles& files) {
  CAIRN_ASSIGN_OR_RETURN(UniqueFd file, files.Create(path));
  const std::string bytes = EncodeSums(sums);
  CAIRN_RETURN_IF_ERROR(PwriteFull(file.get(), std::as_bytes(std::span(bytes)), 0, path));
  CAIRN_RETURN_IF_ERROR(SyncFile(file.get(), path));
  return std::move(file).Close(path);
}

}  // namespace

Result<std::vector<ShardRecord>> Drain(Slot& slot, const ImagePlan& plan, const DrainOptions& options,
                                       DrainProgress& progress) {
  NewFiles files(options.mode);
  std::vector<ShardRecord> records;
  Hasher128 content;
  const auto drain_all = [&]() -> Status {
    for (size_t i = 0; i < plan.images.size(); ++i) {
      const Image& image = plan.images[i];
      const std::string folder = options.directory + "/";
      const std::string path = folder + names::Shard(image.number);
      ShardWriter writer(slot.image(i), image.size_bytes, path, progress);
      CAIRN_ASSIGN_OR_RETURN(const Sums sums, std::move(writer).Write(files, options.direct));
      CAIRN_RETURN_IF_ERROR(WriteSums(sums, folder + names::Sums(image.number), files));
      records.push_back({image.number, image.size_bytes, sums.Root()});
      content.Update(std::as_bytes(std::span(records.back().sums_root.bytes)));
    }
    return OkStatus();
  };
  if (Status status = drain_all(); !status.ok()) {
    return status.Annotate("after " + std::to_string(progress.bytes_written.load()) + " of " +
                           std::to_string(plan.bytes) + " bytes of this rank");
  }
  files.Keep();
  slot.sidecar().MarkHashed(content.Finish());
  return records;
}

void YieldToComputeThreads() {
  // Priorities are per thread on Linux. A refusal leaves the worker as it was.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10));
}

}  // namespace cairn
