#include "runtime/staging/write_through_slot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/hash.h"
#include "runtime/staging/block_writer.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/snapshot.h"

namespace cairn {
namespace {

constexpr uint64_t kProbeBlocksPerBuffer = 2;

}  // namespace

uint64_t WriteThroughSlot::BytesFor(int buffers) { return static_cast<uint64_t>(buffers) * kBlockBytes; }

Result<std::unique_ptr<WriteThroughSlot>> WriteThroughSlot::Make(const WriteThroughOptions& options,
                                                                 int buffers,
                                                                 const MayTakeFunction& may_take) {
  std::unique_ptr<WriteThroughSlot> slot(new WriteThroughSlot(options));
  for (int i = 0; i < buffers; ++i) {
    CAIRN_ASSIGN_OR_RETURN(Mapping buffer, Mapping::Make(-1, kBlockBytes, "a write buffer", may_take));
    slot->buffers_.push_back(std::move(buffer));
  }
  return slot;
}

WriteThroughSlot::WriteThroughSlot(const WriteThroughOptions& options)
    : Slot(0),
      options_(options),
      folder_(options.run_directory + "/" + names::StagingFolder({options.claim, options.rank})),
      owner_(getpid()) {}

WriteThroughSlot::~WriteThroughSlot() {
  if (owner_ == getpid()) static_cast<void>(RemoveTree(folder_));
}

Result<ShardFile> WriteThroughSlot::Create(uint32_t number, uint64_t bytes, NewFiles& files) const {
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    return Status::FromErrno(errno, "mkdir " + folder_);
  CAIRN_RETURN_IF_ERROR(RemoveFile(folder_ + "/" + names::Shard(number)));  // of a dropped save
  return ShardFile::Create(number, bytes, folder_, options_.direct, files);
}

Status WriteThroughSlot::WriteBlocks(std::vector<ShardFile>& shards, const Copy& copy,
                                     uint64_t bytes_per_second, DrainControl& control) {
  BlockWriter::Options options;
  options.make_engine = [this] { return MakeWriteEngine(options_.writer); };
  options.bytes_per_second = bytes_per_second;
  options.places = buffers_.size();
  options.content = [&](size_t shard, uint64_t block, size_t place) {
    const uint64_t begin = block * kBlockBytes;
    copy(shard, begin, begin + BlockBytes(shards[shard].sums.file_bytes, block), buffers_[place].data());
    return buffers_[place].data();
  };
  BlockWriter writer(shards, options, control);
  if (!control.hurried()) writer.Run(/*gently=*/true);
  if (!writer.done()) writer.Run(/*gently=*/false);
  return writer.failure();
}

Status WriteThroughSlot::Fill(const ImagePlan& plan, const SnapshotPlan& snapshot, void* const* pieces,
                              DrainControl& control) {
  shards_.clear();
  NewFiles files(options_.mode);
  Status copied;
  const auto write_all = [&]() -> Status {
    for (const Image& image : plan.images) {
      CAIRN_ASSIGN_OR_RETURN(ShardFile shard, Create(image.number, image.size_bytes, files));
      shards_.push_back(std::move(shard));
    }
    const auto copy = [&](size_t shard, uint64_t begin, uint64_t end, std::byte* out) {
      const auto& header = plan.images[shard].header;
      const uint64_t data = std::clamp<uint64_t>(header.size(), begin, end);
      if (begin < data) std::memcpy(out, header.data() + begin, data - begin);
      if (data < end && copied.ok())
        copied = snapshot.CopyRange(pieces, shard, data, end, out + (data - begin));
    };
    CAIRN_RETURN_IF_ERROR(WriteBlocks(shards_, copy, options_.bytes_per_second, control));
    return copied;
  };
  if (Status status = write_all(); !status.ok()) {
    shards_.clear();
    static_cast<void>(RemoveTree(folder_));
    return status.Annotate("after " + std::to_string(control.bytes_written()) + " of " +
                           std::to_string(plan.bytes) + " bytes of this rank");
  }
  files.Keep();
  return snapshot.late() ? OkStatus() : Finish(snapshot);
}

Result<std::vector<ShardRecord>> WriteThroughSlot::Drain(const ImagePlan&, const DrainOptions& options,
                                                         DrainControl& control) {
  if (control.cancelled()) return Status(Code::kCancelled, "move " + folder_ + ": cancelled");
  NewFiles moved(options.mode);
  CAIRN_ASSIGN_OR_RETURN(const std::vector<ShardRecord> records,
                         FinishShards(shards_, options.directory, moved));
  Hasher128 content;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::string path = options.directory + "/" + names::Shard(shards_[i].number);
    CAIRN_RETURN_IF_ERROR(RenameDirectory(shards_[i].path, path));
    moved.Add(path);
    content.Update(std::as_bytes(std::span(records[i].sums_root.bytes)));
  }
  moved.Keep();
  sidecar().MarkHashed(content.Finish());
  return records;
}

Result<double> WriteThroughSlot::MeasureRate() {
  const uint64_t bytes = kProbeBlocksPerBuffer * buffers_.size() * kBlockBytes;
  const auto measure = [&]() -> Result<double> {
    NewFiles files(options_.mode);
    std::vector<ShardFile> shards;
    CAIRN_ASSIGN_OR_RETURN(ShardFile shard, Create(1, bytes, files));
    shards.push_back(std::move(shard));
    const auto begin = std::chrono::steady_clock::now();
    DrainControl control;
    CAIRN_RETURN_IF_ERROR(WriteBlocks(
        shards, [](size_t, uint64_t, uint64_t, std::byte*) {}, 0, control));
    CAIRN_RETURN_IF_ERROR(SyncFile(shards[0].fd.get(), shards[0].path));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double rate = static_cast<double>(bytes) / took.count();
    return options_.bytes_per_second == 0 ? rate
                                          : std::min(rate, static_cast<double>(options_.bytes_per_second));
  };
  Result<double> rate = measure();
  static_cast<void>(RemoveTree(folder_));
  return rate;
}

}  // namespace cairn
