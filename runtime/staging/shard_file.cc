#include "runtime/staging/shard_file.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/file.h"
#include "runtime/io/together.h"

namespace cairn {

Result<ShardFile> ShardFile::Create(uint32_t number, uint64_t bytes, const std::string& folder,
                                    bool may_be_direct, NewFiles& files) {
  ShardFile shard{.number = number, .path = folder + "/" + names::Shard(number)};
  shard.sums.file_bytes = bytes;
  shard.sums.blocks.resize(BlockCount(bytes));
  CAIRN_ASSIGN_OR_RETURN(shard.fd, files.Create(shard.path));
  CAIRN_RETURN_IF_ERROR(Preallocate(shard.fd.get(), bytes, shard.path));
  shard.direct = may_be_direct && SetDirect(shard.fd.get(), true);
  return shard;
}

Result<std::vector<ShardRecord>> FinishShards(std::vector<ShardFile>& shards, const std::string& folder,
                                              NewFiles& files) {
  std::vector<ShardRecord> records;
  std::vector<std::function<Status()>> syncs;
  std::vector<std::pair<UniqueFd, std::string>> sums;
  sums.reserve(shards.size());
  for (ShardFile& shard : shards) {
    // The last block was written in whole pages if it went past the page cache.
    if (ftruncate(shard.fd.get(), static_cast<off_t>(shard.sums.file_bytes)) != 0)
      return Status::FromErrno(errno, "cut " + shard.path);
    std::string path = folder + "/" + names::Sums(shard.number);
    CAIRN_ASSIGN_OR_RETURN(UniqueFd file, files.Write(path, EncodeSums(shard.sums)));
    sums.emplace_back(std::move(file), std::move(path));
    syncs.push_back([&shard] { return SyncFile(shard.fd.get(), shard.path); });
    syncs.push_back([&file = sums.back()] { return SyncFile(file.first.get(), file.second); });
    records.push_back({shard.number, shard.sums.file_bytes, shard.sums.Root()});
  }
  CAIRN_RETURN_IF_ERROR(Together(syncs));
  for (ShardFile& shard : shards) CAIRN_RETURN_IF_ERROR(std::move(shard.fd).Close(shard.path));
  for (auto& [file, path] : sums) CAIRN_RETURN_IF_ERROR(std::move(file).Close(path));
  return records;
}

}  // namespace cairn
