#include "runtime/staging/write_through_slot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/hash.h"
#include "runtime/io/random.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/new_files.h"
#include "runtime/staging/snapshot.h"

namespace cairn {
namespace {

constexpr uint64_t kProbeBlocksPerWriter = 2;

}  // namespace

uint64_t WriteThroughSlot::BytesFor(int writers) { return static_cast<uint64_t>(writers) * kBlockBytes; }

Result<std::unique_ptr<WriteThroughSlot>> WriteThroughSlot::Make(const WriteThroughOptions& options,
                                                                 int writers,
                                                                 const MayTakeFunction& may_take) {
  std::unique_ptr<WriteThroughSlot> slot(new WriteThroughSlot(options, writers));
  for (int i = 0; i < slot->crew_.size(); ++i) {
    CAIRN_ASSIGN_OR_RETURN(Mapping buffer, Mapping::Make(-1, kBlockBytes, "a write buffer", may_take));
    slot->buffers_.push_back(std::move(buffer));
  }
  return slot;
}

WriteThroughSlot::WriteThroughSlot(const WriteThroughOptions& options, int writers)
    : Slot(0),
      options_(options),
      folder_(options.run_directory + "/" +
              names::StagingFolder({options.epoch, options.rank, RandomHex(8)})),
      owner_(getpid()),
      crew_(writers, "cairn-writer") {}

WriteThroughSlot::~WriteThroughSlot() {
  if (owner_ == getpid()) static_cast<void>(RemoveTree(folder_));
}

Result<WriteThroughSlot::File> WriteThroughSlot::Create(const std::string& name, uint64_t bytes) const {
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    return Status::FromErrno(errno, "mkdir " + folder_);
  File file;
  file.path = folder_ + "/" + name;
  CAIRN_RETURN_IF_ERROR(RemoveFile(file.path));  // of a dropped save
  CAIRN_ASSIGN_OR_RETURN(file.fd, OpenFile(file.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
  if (options_.mode && fchmod(file.fd.get(), static_cast<mode_t>(*options_.mode)) != 0)
    return Status::FromErrno(errno, "chmod " + file.path);
  CAIRN_RETURN_IF_ERROR(Preallocate(file.fd.get(), bytes, file.path));
  file.sums.file_bytes = bytes;
  file.sums.blocks.resize(BlockCount(bytes));
  return file;
}

template <typename Copy>
Status WriteThroughSlot::WriteBlocks(File& file, const Copy& copy, DrainControl& control) {
  std::atomic<bool> direct = options_.direct && SetDirect(file.fd.get(), true);
  std::atomic<bool> failed = false;
  std::mutex mutex;
  Status failure;  // guarded by mutex
  const auto write = [&](uint32_t block, int member) -> Status {
    if (control.cancelled()) return {Code::kCancelled, "write " + file.path + ": cancelled"};
    const uint64_t offset = block * kBlockBytes;
    std::byte* const buffer = buffers_[static_cast<size_t>(member)].data();
    const std::span<const std::byte> content(buffer, BlockBytes(file.sums.file_bytes, block));
    copy(offset, offset + content.size(), buffer);
    file.sums.blocks[block] = Hash128Of(content);
    Status written(Code::kInvalid, "");
    if (direct) {
      // O_DIRECT wants whole pages; the buffer has them, and what is past the end is cut off again.
      written = PwriteFull(file.fd.get(), {content.data(), WholePages(content.size())}, offset, file.path);
      if (written.code() == Code::kInvalid) direct = !SetDirect(file.fd.get(), false);
    }
    if (written.code() == Code::kInvalid) written = PwriteFull(file.fd.get(), content, offset, file.path);
    if (written.ok()) control.AddWritten(content.size());
    return written;
  };
  crew_.Run(static_cast<uint32_t>(file.sums.blocks.size()), [&](uint32_t block, int member) {
    if (failed) return;
    Status status = write(block, member);
    if (status.ok()) return;
    failed = true;
    const std::lock_guard lock(mutex);
    if (failure.ok()) failure = std::move(status);
  });
  CAIRN_RETURN_IF_ERROR(failure);
  if (ftruncate(file.fd.get(), static_cast<off_t>(file.sums.file_bytes)) != 0)
    return Status::FromErrno(errno, "cut " + file.path);
  return OkStatus();
}

Status WriteThroughSlot::Fill(const ImagePlan& plan, const SnapshotPlan& snapshot, void* const* pieces,
                              DrainControl& control) {
  files_.clear();
  const auto write_all = [&]() -> Status {
    for (size_t i = 0; i < plan.images.size(); ++i) {
      const Image& image = plan.images[i];
      CAIRN_ASSIGN_OR_RETURN(File file, Create(names::Shard(image.number), image.size_bytes));
      files_.push_back(std::move(file));
      const auto copy = [&](uint64_t begin, uint64_t end, std::byte* out) {
        const uint64_t data = std::clamp<uint64_t>(image.header.size(), begin, end);
        if (begin < data) std::memcpy(out, image.header.data() + begin, data - begin);
        if (data < end) snapshot.CopyRange(pieces, i, data, end, out + (data - begin));
      };
      CAIRN_RETURN_IF_ERROR(WriteBlocks(files_.back(), copy, control));
    }
    return OkStatus();
  };
  if (Status status = write_all(); !status.ok()) {
    files_.clear();
    static_cast<void>(RemoveTree(folder_));
    return status.Annotate("after " + std::to_string(control.bytes_written()) + " of " +
                           std::to_string(plan.bytes) + " bytes of this rank");
  }
  sidecar().MarkStaged();
  return OkStatus();
}

Result<std::vector<ShardRecord>> WriteThroughSlot::Drain(const ImagePlan& plan, const DrainOptions& options,
                                                         DrainControl& control) {
  NewFiles moved(options.mode);
  std::vector<ShardRecord> records;
  Hasher128 content;
  for (size_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    const uint32_t number = plan.images[i].number;
    if (control.cancelled()) return Status(Code::kCancelled, "move " + file.path + ": cancelled");
    CAIRN_RETURN_IF_ERROR(SyncFile(file.fd.get(), file.path));
    CAIRN_RETURN_IF_ERROR(std::move(file.fd).Close(file.path));
    CAIRN_RETURN_IF_ERROR(WriteSums(file.sums, options.directory + "/" + names::Sums(number), moved));
    const std::string path = options.directory + "/" + names::Shard(number);
    CAIRN_RETURN_IF_ERROR(RenameDirectory(file.path, path));
    moved.Add(path);
    records.push_back({number, file.sums.file_bytes, file.sums.Root()});
    content.Update(std::as_bytes(std::span(records.back().sums_root.bytes)));
  }
  moved.Keep();
  sidecar().MarkHashed(content.Finish());
  return records;
}

Result<double> WriteThroughSlot::MeasureRate() {
  const uint64_t bytes = kProbeBlocksPerWriter * BytesFor(crew_.size());
  const auto measure = [&]() -> Result<double> {
    CAIRN_ASSIGN_OR_RETURN(File file, Create("probe", bytes));
    const auto begin = std::chrono::steady_clock::now();
    DrainControl control;
    CAIRN_RETURN_IF_ERROR(WriteBlocks(
        file, [](uint64_t, uint64_t, std::byte*) {}, control));
    CAIRN_RETURN_IF_ERROR(SyncFile(file.fd.get(), file.path));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(bytes) / took.count();
  };
  Result<double> rate = measure();
  static_cast<void>(RemoveTree(folder_));
  return rate;
}

}  // namespace cairn
