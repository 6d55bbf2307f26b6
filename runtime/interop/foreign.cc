#include "runtime/interop/foreign.h"

#include <algorithm>
#include <filesystem>

#include "runtime/formats/names.h"
#include "runtime/interop/dcp.h"
#include "runtime/interop/safetensors_file.h"
#include "runtime/io/file.h"

namespace cairn {

namespace fs = std::filesystem;

std::string ForeignFormat(const std::string& path) {
  std::error_code error;
  const auto holds = [&](std::string_view name) { return fs::exists(fs::path(path) / name, error); };
  if (fs::is_regular_file(path, error)) return "safetensors";
  if (holds(kDcpMetadata)) return "dcp";
  if (holds(names::kRun) || holds(names::kManifest)) return "";
  const auto entries = ListDirectory(path);
  const bool any = entries.ok() && std::any_of(entries->begin(), entries->end(), [](const std::string& name) {
                     return name.ends_with(".safetensors") && !name.starts_with('.');
                   });
  return any || holds(kHuggingFaceIndex) ? "safetensors" : "";
}

Result<std::unique_ptr<StoredSource>> OpenForeign(const std::string& format, const std::string& path) {
  return format == "dcp" ? OpenDcp(path) : OpenSafetensors(path);
}

Result<ForeignState> DescribeForeign(const std::string& format, const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<StoredSource> source, OpenForeign(format, path));
  ForeignState state;
  state.files = source->files();
  state.index.world_size = 1;
  CAIRN_ASSIGN_OR_RETURN(state.index.saved, source->Layout());
  for (const std::string& file : state.files) {
    CAIRN_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(file));
    state.index.files.push_back({static_cast<uint32_t>(state.index.files.size() + 1), bytes, {}});
  }
  return state;
}

}  // namespace cairn
