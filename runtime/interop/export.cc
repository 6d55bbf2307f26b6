#include "runtime/interop/export.h"

#include <fcntl.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/interop/meter.h"
#include "runtime/interop/output.h"
#include "runtime/interop/safetensors_file.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

// Which arrays go into which file, in their order.
std::vector<std::span<const NamedArray>> Divide(const ArraySource& source, std::span<const NamedArray> arrays,
                                                uint64_t file_limit) {
  std::vector<std::span<const NamedArray>> files;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const uint64_t size = ArrayBytes(source.arrays()[arrays[i].array]);
    if (i > first && bytes + size > file_limit) {
      files.push_back(arrays.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += size;
  }
  files.push_back(arrays.subspan(first));
  return files;
}

std::string HuggingFaceName(size_t number, size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

}  // namespace

Result<Exported> ExportSafetensors(ArraySource& source, std::span<const NamedArray> arrays,
                                   const std::string& path, const Progress& progress) {
  CAIRN_ASSIGN_OR_RETURN(Output output, Output::File(path));
  Meter meter(source, arrays, progress);
  CAIRN_ASSIGN_OR_RETURN(const uint64_t bytes,
                         WriteSafetensors(source, arrays, output.temporary(), std::ref(meter)));
  CAIRN_RETURN_IF_ERROR(output.Publish());
  return Exported{output.path(), {}, bytes};
}

Result<Exported> ExportHuggingFace(ArraySource& source, std::span<const NamedArray> arrays,
                                   const std::string& path, uint64_t file_limit, const Progress& progress) {
  CAIRN_ASSIGN_OR_RETURN(Output output, Output::Folder(path));
  Meter meter(source, arrays, progress);
  Exported exported{output.path(), {}, 0};
  Json weight_map = Json::object();
  const auto files = Divide(source, arrays, file_limit);
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name = HuggingFaceName(i + 1, files.size());
    CAIRN_ASSIGN_OR_RETURN(
        const uint64_t bytes,
        WriteSafetensors(source, files[i], output.temporary() + "/" + name, std::ref(meter)));
    exported.files.push_back(name);
    exported.bytes += bytes;
    for (const NamedArray& named : files[i])
      weight_map.get_ref<Json::object_t&>().emplace_back(named.name, name);
  }
  if (files.size() > 1) {
    const std::string text =
        Json{{"metadata", {{"total_size", meter.total()}}}, {"weight_map", std::move(weight_map)}}.dump(2) +
        "\n";
    const std::string name(kHuggingFaceIndex);
    CAIRN_RETURN_IF_ERROR(PublishFile(output.temporary() + "/" + name, text));
    exported.files.push_back(name);
    exported.bytes += text.size();
  }
  CAIRN_RETURN_IF_ERROR(output.Publish());
  return exported;
}

}  // namespace cairn
