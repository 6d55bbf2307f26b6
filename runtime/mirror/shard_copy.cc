#include "runtime/mirror/shard_copy.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/catalog/verify.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/io/new_files.h"
#include "runtime/io/object_store.h"
#include "runtime/io/readable.h"
#include "runtime/io/stores.h"
#include "runtime/staging/shard_file.h"

namespace cairn {
namespace {

constexpr uint64_t kWindowBytes = 64 << 20;

// A shard that is read from its begin to its end, window by window.
class Source {
 public:
  static Result<Source> Open(const ShardRecord& record, const std::string& folder,
                             const ShardCopyOptions& options) {
    Source source(folder + "/" + names::Shard(record.number), options);
    CAIRN_ASSIGN_OR_RETURN(source.sums_, ReadSums(folder, record));
    CAIRN_ASSIGN_OR_RETURN(source.file_, Readable::Open(source.path_));
    source.file_->ExpectInOrder();
    return source;
  }

  const Sums& sums() const { return sums_; }
  bool ended() const { return at_ == sums_.file_bytes; }

  // The next `room.size()` bytes, whole blocks unless that is all, or what is left.
  Result<std::span<const std::byte>> Next(std::span<std::byte> room) {
    const std::span<std::byte> window = room.first(std::min(room.size(), sums_.file_bytes - at_));
    for (uint64_t done = 0; done < window.size(); done += kBlockBytes) {
      const uint64_t block = (at_ + done) / kBlockBytes;
      const auto bytes = window.subspan(done, BlockBytes(sums_.file_bytes, block));
      CAIRN_RETURN_IF_ERROR(AwaitTurn(bytes.size()));
      Status read = Read(block, bytes);
      if (read.code() == Code::kDamage) {  // only what reproduces is damage
        DropCached(path_);
        read = Read(block, bytes);
      }
      CAIRN_RETURN_IF_ERROR(read);
    }
    at_ += window.size();
    return std::span<const std::byte>(window);
  }

 private:
  Source(std::string path, const ShardCopyOptions& options) : path_(std::move(path)), options_(&options) {}

  Status AwaitTurn(uint64_t bytes) const {
    const auto begin = options_->pace->Take(bytes, std::chrono::steady_clock::now());
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_until(lock, options_->stop, begin, [] { return false; });
    return options_->stop.stop_requested() ? Status(Code::kCancelled, "the copy was stopped") : OkStatus();
  }

  Status Read(uint64_t block, std::span<std::byte> to) const {
    CAIRN_RETURN_IF_ERROR(file_->Read(block * kBlockBytes, to));
    if (Hash128Of(std::span<const std::byte>(to)) == sums_.blocks[block]) return OkStatus();
    return {Code::kDamage, path_ + ": block " + std::to_string(block) + " does not match its checksum"};
  }

  std::string path_;
  const ShardCopyOptions* options_;
  Sums sums_;
  std::unique_ptr<Readable> file_;
  uint64_t at_ = 0;
};

Status CopyToFolder(Source& source, const ShardRecord& record, const std::string& to,
                    const ShardCopyOptions& options) {
  NewFiles files(options.mode);
  std::vector<std::byte> room(std::min(kWindowBytes, record.bytes));
  CAIRN_ASSIGN_OR_RETURN(ShardFile shard, ShardFile::Create(record.number, record.bytes, to, false, files));
  shard.sums = source.sums();
  uint64_t at = 0;
  while (!source.ended()) {
    CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, source.Next(room));
    CAIRN_RETURN_IF_ERROR(PwriteFull(shard.fd.get(), bytes, at, shard.path));
    at += bytes.size();
    options.copied(bytes.size());
  }
  std::vector<ShardFile> shards;
  shards.push_back(std::move(shard));
  CAIRN_RETURN_IF_ERROR(FinishShards(shards, to, files).status());
  DropCached(shards.front().path);  // nobody here reads it
  files.Keep();
  return OkStatus();
}

Status CopyToBucket(Source& source, const ShardRecord& record, const std::string& to,
                    const ShardCopyOptions& options) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(to));
  const std::string key = place.prefix() + names::Shard(record.number);
  std::vector<std::byte> room;  // outlives the upload
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectUpload> upload, place.store->Upload(key, record.bytes));
  const std::stop_callback cancel(options.stop, [&upload] { upload->Cancel(); });
  // Whole blocks and whole parts.
  const uint64_t part_bytes = upload->part_bytes(), unit = std::lcm(part_bytes, kBlockBytes);
  room.resize((std::min(kWindowBytes, record.bytes) + unit - 1) / unit * unit);
  uint64_t part = 0;
  while (!source.ended()) {
    CAIRN_ASSIGN_OR_RETURN(std::span<const std::byte> bytes, source.Next(room));
    const uint64_t window_bytes = bytes.size();
    while (!bytes.empty()) {
      const auto next = bytes.first(std::min<uint64_t>(part_bytes, bytes.size()));
      CAIRN_RETURN_IF_ERROR(upload->Send(part++, next));
      bytes = bytes.subspan(next.size());
    }
    CAIRN_RETURN_IF_ERROR(upload->Await());
    options.copied(window_bytes);
  }
  CAIRN_RETURN_IF_ERROR(
      PublishFile(to + "/" + names::Sums(record.number), EncodeSums(source.sums()), options.mode));
  return upload->Finish();
}

}  // namespace

Status CopyShard(const ShardRecord& record, const std::string& from, const std::string& to,
                 const ShardCopyOptions& options) {
  CAIRN_ASSIGN_OR_RETURN(Source source, Source::Open(record, from, options));
  return IsObjectPath(to) ? CopyToBucket(source, record, to, options)
                          : CopyToFolder(source, record, to, options);
}

}  // namespace cairn
