#include "runtime/interop/safetensors_file.h"

#include <fcntl.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "runtime/formats/shard.h"
#include "runtime/io/file.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxIndexBytes = 256 << 20;

// The files of a state, and which tensors must be in which of them: tensor → file; none where nothing says so.
struct Contents {
  std::vector<std::string> files;
  std::map<std::string, std::string> file_of;
};

Result<Contents> ReadHuggingFaceIndex(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kHuggingFaceIndex);
  CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, kMaxIndexBytes));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object() || map->empty())
    return Status(Code::kDamage, path + ": is no JSON object with a \"weight_map\" of tensors and files");
  Contents contents;
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos)
      return Status(Code::kDamage, path + ": \"" + tensor + "\" is in no file of this folder");
    contents.file_of[tensor] = folder + "/" + file.get<std::string>();
    files.insert(contents.file_of[tensor]);
  }
  contents.files.assign(files.begin(), files.end());
  return contents;
}

Result<Contents> ContentsOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return Contents{{path}, {}};
  if (fs::exists(path + "/" + std::string(kHuggingFaceIndex), error)) return ReadHuggingFaceIndex(path);
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(path));
  std::vector<std::string> files;
  for (const std::string& entry : entries) {
    if (entry.ends_with(".safetensors") && !entry.starts_with('.')) files.push_back(path + "/" + entry);
  }
  if (files.empty()) return Status(Code::kNotFound, path + " holds no *.safetensors file");
  return Contents{std::move(files), {}};
}

Result<ParsedShard> ReadHeader(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const uint64_t file_bytes, FileBytes(path));
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  std::string header(std::min<uint64_t>(8, file_bytes), '\0');
  const auto bytes = [&] { return std::as_writable_bytes(std::span(header)); };
  CAIRN_RETURN_IF_ERROR(PreadFull(fd.get(), bytes(), 0, path));
  const Result<uint64_t> header_bytes = ShardHeaderBytes(header, file_bytes);
  if (!header_bytes.ok()) return header_bytes.status().Annotate(path);
  header.resize(*header_bytes);
  CAIRN_RETURN_IF_ERROR(PreadFull(fd.get(), bytes(), 0, path));
  Result<ParsedShard> shard = ParseShard(header, file_bytes);
  if (!shard.ok()) return shard.status().Annotate(path);
  return shard;
}

}  // namespace

Result<std::unique_ptr<StoredSource>> OpenSafetensors(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const Contents contents, ContentsOf(path));
  const std::vector<std::string>& files = contents.files;
  std::vector<ArraySpec> arrays;
  std::vector<StoredBox> boxes;
  std::map<std::string, uint32_t> known;
  std::map<std::string, std::string> missing = contents.file_of;
  for (uint32_t f = 0; f < files.size(); ++f) {
    CAIRN_ASSIGN_OR_RETURN(const ParsedShard shard, ReadHeader(files[f]));
    for (const ParsedShard::Entry& entry : shard.entries) {
      const ShardTensor& tensor = entry.tensor;
      if (const auto told = contents.file_of.find(tensor.fqn); told != contents.file_of.end()) {
        if (told->second != files[f]) continue;
        missing.erase(tensor.fqn);
      }
      const auto [it, fresh] = known.emplace(tensor.fqn, arrays.size());
      if (fresh) arrays.push_back({tensor.fqn, tensor.dtype, false, Dims::Filled(tensor.box.rank(), 0)});
      ArraySpec& array = arrays[it->second];
      if (array.dtype != tensor.dtype || array.shape.size() != tensor.box.rank()) {
        return Status(Code::kDamage, files[f] + ": \"" + tensor.fqn +
                                         "\" has another type or number of "
                                         "dimensions than in the files before it");
      }
      for (int d = 0; d < array.shape.size(); ++d)  // the format has no global shape
        array.shape[d] = std::max(array.shape[d], tensor.box.offset[d] + tensor.box.extent[d]);
      if (!tensor.box.empty()) {
        boxes.push_back({it->second, f, entry.offset, tensor.box,
                         DenseStrides(tensor.box.extent, DTypeBytes(tensor.dtype))});
      }
    }
  }
  if (!missing.empty()) {
    const auto& [tensor, file] = *missing.begin();
    return Status(Code::kDamage, file + ": does not hold \"" + tensor + "\", which " +
                                     std::string(kHuggingFaceIndex) + " says is there");
  }
  return StoredSource::Make(path, std::move(arrays), files, std::move(boxes));
}

Result<uint64_t> WriteSafetensors(ArraySource& source, std::span<const NamedArray> arrays,
                                  const std::string& path, const std::function<void(uint64_t)>& wrote) {
  std::vector<ShardTensor> tensors;
  for (const NamedArray& named : arrays) {
    const ArraySpec& spec = source.arrays()[named.array];
    tensors.push_back({named.name, spec.dtype, Box::Whole(spec.shape)});
  }
  CAIRN_ASSIGN_OR_RETURN(const ShardLayout layout, LayOutWhole(tensors));
  CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_WRONLY | O_CREAT | O_EXCL));
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd.get(), std::as_bytes(std::span(layout.header)), 0, path));
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Status streamed =
        Stream(source, arrays[i].array, tensors[i].box,
               [&](const Box&, std::span<const std::byte> bytes, uint64_t offset) -> Status {
                 CAIRN_RETURN_IF_ERROR(PwriteFull(fd.get(), bytes, layout.offsets[i] + offset, path));
                 wrote(bytes.size());
                 return OkStatus();
               });
    if (!streamed.ok()) return streamed;
  }
  CAIRN_RETURN_IF_ERROR(SyncFile(fd.get(), path));
  CAIRN_RETURN_IF_ERROR(std::move(fd).Close(path));
  return layout.file_bytes;
}

}  // namespace cairn
