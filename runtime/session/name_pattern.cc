#include "runtime/session/name_pattern.h"

#include <vector>

namespace cairn {
namespace {

std::vector<std::string_view> Split(std::string_view pattern) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t star = pattern.find('*');
    parts.push_back(pattern.substr(0, star));
    if (star == std::string_view::npos) return parts;
    pattern.remove_prefix(star + 1);
  }
}

// What each '*' stands for. Taking each part where it is first found leaves most for the parts behind it, so there is no way back to try.
std::optional<std::vector<std::string_view>> Stars(std::string_view pattern, std::string_view name) {
  const std::vector<std::string_view> parts = Split(pattern);
  if (!name.starts_with(parts.front())) return std::nullopt;
  name.remove_prefix(parts.front().size());
  if (parts.size() == 1 && !name.empty()) return std::nullopt;
  std::vector<std::string_view> stars;
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (last && !name.ends_with(parts[i])) return std::nullopt;
    const size_t at = last ? name.size() - parts[i].size() : name.find(parts[i]);
    if (at == std::string_view::npos) return std::nullopt;
    stars.push_back(name.substr(0, at));
    name.remove_prefix(at + parts[i].size());
  }
  return stars;
}

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  return Stars(pattern, name).has_value();
}

std::optional<std::string> RenameByPattern(std::string_view pattern, std::string_view replacement,
                                           std::string_view name) {
  const auto stars = Stars(pattern, name);
  if (!stars) return std::nullopt;
  const std::vector<std::string_view> parts = Split(replacement);
  std::string out(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) out.append((*stars)[i - 1]).append(parts[i]);
  return out;
}

}  // namespace cairn
