#include "runtime/staging/shard_upload.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/io/hash.h"
#include "runtime/io/stores.h"
#include "runtime/io/together.h"

namespace cairn {

void ShardUpload::CancelUploads() {
  const std::lock_guard lock(mutex_);
  for (Shard& shard : shards_) shard.upload->Cancel();
}

// A store that is away is not asked once more for each shard to give up what it holds.
Status ShardUpload::Note(Status status) {
  if (status.code() == Code::kUnavailable || status.code() == Code::kTimeout) CancelUploads();
  return status;
}

Status ShardUpload::Begin(uint32_t number, std::span<const std::byte> image) {
  if (control_.cancelled()) return {Code::kCancelled, "cancelled"};
  Shard shard{.number = number, .path = folder_ + "/" + names::Shard(number), .image = image};
  shard.sums.file_bytes = image.size();
  shard.sums.blocks.resize(BlockCount(image.size()));
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(shard.path));
  Result<std::unique_ptr<ObjectUpload>> upload = place.store->Upload(place.key, image.size());
  if (!upload.ok()) return Note(upload.status());
  shard.upload = *std::move(upload);
  const std::lock_guard lock(mutex_);
  shards_.push_back(std::move(shard));
  return OkStatus();
}

void ShardUpload::Run(bool gently) {
  control_.SetWriter("objects");
  while (!done() && !(gently && control_.hurried())) failure_ = Note(SendNext(gently));
}

// Its part's turn comes at once when the drain is hurried or cancelled meanwhile.
Status ShardUpload::SendNext(bool gently) {
  Shard& shard = shards_[next_];
  const uint64_t begin = part_ * shard.upload->part_bytes();
  const uint64_t end = std::min<uint64_t>(begin + shard.upload->part_bytes(), shard.image.size());
  if (gently) control_.SleepUntil(pace_.Take(end - begin, std::chrono::steady_clock::now()));
  if (control_.cancelled()) return {Code::kCancelled, "cancelled"};
  for (; shard.hashed < shard.sums.blocks.size() && shard.hashed * kBlockBytes < end; ++shard.hashed) {
    shard.sums.blocks[shard.hashed] = Hash128Of(
        shard.image.subspan(shard.hashed * kBlockBytes, BlockBytes(shard.image.size(), shard.hashed)));
  }
  CAIRN_RETURN_IF_ERROR(shard.upload->Send(part_, shard.image.subspan(begin, end - begin)));
  control_.AddWritten(end - begin);
  ++part_;
  if (end < shard.image.size()) return OkStatus();
  part_ = 0;
  ++next_;
  return OkStatus();
}

Result<std::vector<ShardRecord>> ShardUpload::Finish(NewFiles& files) {
  if (control_.cancelled()) return Status(Code::kCancelled, "cancelled");
  std::vector<ShardRecord> records;
  std::vector<std::function<Status()>> calls;
  for (Shard& shard : shards_) {
    const std::string sums = folder_ + "/" + names::Sums(shard.number);
    files.Add(shard.path);
    files.Add(sums);
    calls.push_back([&shard] { return shard.upload->Finish(); });
    calls.push_back([&shard, sums] { return PublishFile(sums, EncodeSums(shard.sums)); });
    records.push_back({shard.number, shard.sums.file_bytes, shard.sums.Root()});
  }
  CAIRN_RETURN_IF_ERROR(Note(Together(calls)));
  // The attempt may have been removed meanwhile; what came too late for that is this rank's to remove.
  if (control_.cancelled()) return Status(Code::kCancelled, "cancelled");
  return records;
}

}  // namespace cairn
