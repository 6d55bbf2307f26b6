#include "runtime/interop/name_map.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

size_t Stars(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '*'));
}

}  // namespace

std::optional<std::string> FitPattern(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const size_t tail = pattern.size() - star - 1;
  if (name.size() < star + tail || name.compare(0, star, pattern, 0, star) != 0 ||
      name.compare(name.size() - tail, tail, pattern, star + 1, tail) != 0) {
    return std::nullopt;
  }
  return name.substr(star, name.size() - star - tail);
}

Result<NameMap> NameMap::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status(Code::kInvalid, "is no JSON object of names");
  NameMap map;
  for (const auto& [from, to] : json.items()) {
    if (!to.is_string() && !to.is_null())
      return Status(Code::kInvalid, "\"" + from + "\": its value is neither a name nor null");
    Rule rule{from, to.is_null() ? std::nullopt : std::optional(to.get<std::string>())};
    if (Stars(from) > 1 || (rule.to && Stars(*rule.to) > Stars(from)))
      return Status(Code::kInvalid,
                    "\"" + from + "\": a name has at most one *, and the new name no more than the old one");
    map.rules_.push_back(std::move(rule));
  }
  return map;
}

std::optional<std::string> NameMap::Map(const std::string& name) const {
  for (const Rule& rule : rules_) {
    const std::optional<std::string> star = FitPattern(rule.from, name);
    if (!star) continue;
    if (!rule.to) return std::nullopt;
    std::string to = *rule.to;
    if (const size_t at = to.find('*'); at != std::string::npos) to.replace(at, 1, *star);
    return to;
  }
  return name;
}

Result<std::vector<NamedArray>> ApplyNames(const NameMap& names, const std::vector<ArraySpec>& arrays) {
  std::vector<NamedArray> out;
  std::map<std::string, std::string> taken;  // new name → old name
  for (uint32_t i = 0; i < arrays.size(); ++i) {
    const std::optional<std::string> name = names.Map(arrays[i].name);
    if (!name) continue;
    const auto [it, fresh] = taken.emplace(*name, arrays[i].name);
    if (!fresh)
      return Status(Code::kInvalid, "\"" + it->second + "\" and \"" + arrays[i].name +
                                        "\" would both be called \"" + *name + "\"");
    out.push_back({i, *name});
  }
  if (out.empty()) return Status(Code::kInvalid, "there is no array, or all are left out");
  return out;
}

}  // namespace cairn
