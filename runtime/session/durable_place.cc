#include "runtime/session/durable_place.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/formats/sealed_json.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKind = "destination";

}  // namespace

uint32_t CurrentUmask() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint32_t mask = 0;
    if (word == "Umask:" && status >> std::oct >> mask) return mask;
  }
  return 077;
}

Result<std::string> EncodeDurablePlace(const DurablePlace& destination) {
  Json members = {{"dir", destination.dir}, {"umask", destination.umask}};
  if (destination.mode) members["mode"] = *destination.mode;
  members["settings"] = destination.settings;
  return SealJson(kKind, members);
}

Result<DurablePlace> DecodeDurablePlace(std::string_view text) {
  CAIRN_ASSIGN_OR_RETURN(const Json members, UnsealJson(kKind, text));
  JsonFields fields(members, kKind);
  DurablePlace destination;
  destination.dir = fields.String("dir");
  destination.umask = static_cast<uint32_t>(fields.Unsigned("umask", 0777));
  if (members.contains("mode")) destination.mode = static_cast<uint32_t>(fields.Unsigned("mode", 07777));
  for (const auto& [name, value] : fields.Object("settings").items()) {
    if (value.is_string()) destination.settings.emplace(name, value.get<std::string>());
  }
  CAIRN_RETURN_IF_ERROR(fields.status());
  if (!destination.dir.starts_with('/') && !destination.dir.starts_with("s3://"))
    return Status(Code::kDamage, "destination: \"" + destination.dir + "\" is no absolute path");
  return destination;
}

}  // namespace cairn
