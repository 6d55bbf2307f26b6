#include "runtime/interop/foreign.h"

#include <algorithm>
#include <filesystem>

#include "runtime/formats/names.h"
#include "runtime/interop/dcp.h"
#include "runtime/interop/safetensors_file.h"
#include "runtime/io/file.h"

namespace cairn {

namespace fs = std::filesystem;

namespace {

// Also of one that has no manifest: it was never committed, and its files may have holes.
bool IsAttempt(const fs::path& path) {
  const std::string name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return names::ParseAttempt(name) || names::ParseDead(name) || names::ParseRemoved(name);
}

}  // namespace

Result<std::string> ForeignFormat(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) return Status::FromErrno(error.value(), "stat " + path);
  if (fs::is_regular_file(status)) return std::string("safetensors");
  if (!fs::is_directory(status)) return std::string();
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(path));
  const auto any = [&](auto fits) { return std::any_of(entries.begin(), entries.end(), fits); };
  const auto holds = [&](std::string_view name) {
    return any([&](const auto& entry) { return entry == name; });
  };
  if (holds(kDcpMetadata)) return std::string("dcp");
  if (holds(names::kRun) || holds(names::kManifest) || IsAttempt(path)) return std::string();
  const bool sums = any([](const std::string& entry) { return names::ParseSums(entry).has_value(); });
  const bool shards = any([](const std::string& entry) { return names::ParseShard(entry).has_value(); });
  if (shards && (sums || holds(names::kIndex))) return std::string();
  const bool tensors = any(
      [](const std::string& entry) { return entry.ends_with(".safetensors") && !entry.starts_with('.'); });
  return std::string(tensors || holds(kHuggingFaceIndex) ? "safetensors" : "");
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
