#include "runtime/catalog/sealed_file.h"

#include <nlohmann/json.hpp>

#include "runtime/formats/sealed_json.h"

namespace cairn {

namespace {
constexpr uint64_t kMaxBytes = 1 << 20;
}

Result<nlohmann::ordered_json> ReadSealed(const std::string& path, std::string_view kind) {
  return Confirmed(path, [&]() -> Result<nlohmann::ordered_json> {
    CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, kMaxBytes));
    auto members = UnsealJson(kind, text);
    if (!members.ok()) return members.status().Annotate(path);
    return members;
  });
}

Status PublishSealed(const std::string& path, std::string_view kind, const nlohmann::ordered_json& members,
                     FileMode mode) {
  CAIRN_ASSIGN_OR_RETURN(const std::string text, SealJson(kind, members));
  return PublishFile(path, text, mode);
}

}  // namespace cairn
