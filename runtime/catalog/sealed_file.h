// Reading and writing of the catalog's small sealed JSON files (runtime/formats/sealed_json.h). Internal to the catalog.
#ifndef CAIRN_RUNTIME_CATALOG_SEALED_FILE_H_
#define CAIRN_RUNTIME_CATALOG_SEALED_FILE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/io/file.h"

namespace cairn {

// The members; the file's path is in every message. kNotFound, kDamage, or what the read failed with.
Result<nlohmann::ordered_json> ReadSealed(const std::string& path, std::string_view kind);

Status PublishSealed(const std::string& path, std::string_view kind, const nlohmann::ordered_json& members,
                     FileMode mode);

// Calls `load` again, past the page cache, when it says kDamage about the file `path`: only what reproduces is damage.
template <typename Load>
auto Confirmed(const std::string& path, Load load) {
  auto result = load();
  if (result.ok() || result.status().code() != Code::kDamage) return result;
  DropCached(path);
  return load();
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_SEALED_FILE_H_
