#include "runtime/session/loader.h"

#include <thread>
#include <unordered_map>

#include "runtime/formats/index.h"
#include "runtime/formats/names.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{2} << 30;

Result<Index> ReadIndexOnce(const std::string& path, const Hash128& hash) {
  CAIRN_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(path, kMaxIndexBytes));
  if (!(Hash128Of(bytes) == hash))
    return Status(Code::kDamage, path + ": its content is not what the manifest says");
  return DecodeIndex(bytes);
}

// The leader has just read this file: where it is not to be seen, another client's attribute cache is behind. And only what a second read
// reproduces is damage.
Result<Index> ReadIndex(const std::string& path, const Hash128& hash) {
  const auto deadline = std::chrono::steady_clock::now() + LoadOptions().attribute_cache_bound;
  for (;;) {
    auto index = ReadIndexOnce(path, hash);
    if (!index.ok() && index.status().code() == Code::kDamage) {
      DropCached(path);
      return ReadIndexOnce(path, hash);
    }
    if (index.ok() || index.status().code() != Code::kNotFound || std::chrono::steady_clock::now() > deadline)
      return index;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

Result<LoadStats> LoadShare(const std::string& path, const Hash128& index_hash,
                            const std::map<uint32_t, std::string>& near, const Items& items) {
  CAIRN_ASSIGN_OR_RETURN(const Index index, ReadIndex(path + "/" + std::string(names::kIndex), index_hash));

  std::unordered_map<std::string, uint32_t> saved;
  for (uint32_t i = 0; i < index.saved.arrays.size(); ++i) saved.emplace(index.saved.arrays[i].name, i);
  std::vector<WantedBox> wanted;
  std::vector<Destination> destinations;
  for (const RegisteredArray& array : items.arrays()) {
    const auto it = saved.find(array.spec.name);
    if (it == saved.end() || !(index.saved.arrays[it->second] == array.spec)) {
      return Status(Code::kMismatch, "array \"" + array.spec.name +
                                         "\" is not in the checkpoint as the program registered it");
    }
    for (const LocalPiece& piece : array.pieces) {
      if (piece.box.empty()) continue;
      wanted.push_back({it->second, piece.box});
      destinations.push_back({piece.data, piece.box, piece.stride_bytes, DTypeBytes(array.spec.dtype)});
    }
  }
  CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(index.saved, wanted));
  const auto load = [&](const std::map<uint32_t, std::string>& copies) {
    std::vector<SourceFile> files;
    for (const ShardRecord& file : index.files) {
      const auto copy = copies.find(file.number);
      files.push_back({copy != copies.end() ? copy->second : path + "/" + names::Shard(file.number),
                       path + "/" + names::Sums(file.number), file.bytes, file.sums_root});
    }
    return ExecuteLoad(plan, files, destinations);
  };
  if (!near.empty()) {
    auto loaded = load(near);
    if (loaded.ok()) return loaded;
  }
  return load({});
}

}  // namespace cairn
