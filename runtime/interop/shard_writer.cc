#include "runtime/interop/shard_writer.h"

#include <fcntl.h>

#include <algorithm>

#include "runtime/formats/names.h"
#include "runtime/io/file.h"

namespace cairn {

Result<ShardWriter> ShardWriter::Create(const std::string& folder, uint32_t number) {
  CAIRN_ASSIGN_OR_RETURN(UniqueFd fd,
                         OpenFile(folder + "/" + names::Shard(number), O_WRONLY | O_CREAT | O_EXCL));
  return ShardWriter(folder, number, std::move(fd));
}

ShardWriter::ShardWriter(std::string folder, uint32_t number, UniqueFd fd)
    : folder_(std::move(folder)),
      number_(number),
      fd_(std::move(fd)),
      block_(std::make_unique<Hasher128>()) {}

std::string ShardWriter::path() const { return folder_ + "/" + names::Shard(number_); }

Status ShardWriter::Write(std::span<const std::byte> bytes) {
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd_.get(), bytes, sums_.file_bytes, path()));
  while (!bytes.empty()) {
    const uint64_t room = kBlockBytes - sums_.file_bytes % kBlockBytes;
    const auto part = bytes.first(std::min<uint64_t>(room, bytes.size()));
    block_->Update(part);
    sums_.file_bytes += part.size();
    bytes = bytes.subspan(part.size());
    if (part.size() < room) return OkStatus();
    sums_.blocks.push_back(block_->Finish());
    block_ = std::make_unique<Hasher128>();
  }
  return OkStatus();
}

Result<ShardRecord> ShardWriter::Finish() && {
  if (sums_.file_bytes % kBlockBytes != 0) sums_.blocks.push_back(block_->Finish());
  CAIRN_RETURN_IF_ERROR(SyncFile(fd_.get(), path()));
  CAIRN_RETURN_IF_ERROR(std::move(fd_).Close(path()));
  CAIRN_RETURN_IF_ERROR(PublishFile(folder_ + "/" + names::Sums(number_), EncodeSums(sums_)));
  return ShardRecord{number_, sums_.file_bytes, sums_.Root()};
}

}  // namespace cairn
