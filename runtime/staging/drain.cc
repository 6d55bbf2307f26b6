#include "runtime/staging/drain.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <span>
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

// Steps 1 to 3.
Result<Sums> WriteShard(const std::byte* data, uint64_t bytes, const std::string& path, bool direct,
                        NewFiles& files, DrainProgress& progress) {
  CAIRN_ASSIGN_OR_RETURN(UniqueFd file, files.Create(path));
  CAIRN_RETURN_IF_ERROR(Preallocate(file.get(), bytes, path));
  direct = direct && SetDirect(file.get(), true);
  Sums sums;
  sums.file_bytes = bytes;
  bool beyond_end = false;
  for (uint64_t block = 0; block < BlockCount(bytes); ++block) {
    if (progress.cancel.load(std::memory_order_relaxed))
      return Status(Code::kCancelled, "write " + path + ": cancelled");
    const uint64_t offset = block * kBlockBytes;
    const std::span<const std::byte> content(data + offset, BlockBytes(bytes, block));
    sums.blocks.push_back(Hash128Of(content));
    Status written;
    if (direct) {
      // O_DIRECT wants whole pages; the mapping has them, and the file is cut afterwards.
      const std::span<const std::byte> pages(content.data(), WholePages(content.size()));
      written = PwriteFull(file.get(), pages, offset, path);
      beyond_end = beyond_end || pages.size() != content.size();
      if (written.code() == Code::kInvalid) direct = !SetDirect(file.get(), false);
    }
    if (!direct) written = PwriteFull(file.get(), content, offset, path);
    CAIRN_RETURN_IF_ERROR(written);
    progress.bytes_written.fetch_add(content.size(), std::memory_order_relaxed);
  }
  if (beyond_end && ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return Status::FromErrno(errno, "cut " + path);
  CAIRN_RETURN_IF_ERROR(SyncFile(file.get(), path));
  CAIRN_RETURN_IF_ERROR(std::move(file).Close(path));
  return sums;
}

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
      CAIRN_ASSIGN_OR_RETURN(const Sums sums,
                             WriteShard(slot.image(i), image.size_bytes, folder + names::Shard(image.number),
                                        options.direct, files, progress));
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
