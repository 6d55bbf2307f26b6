#include "runtime/command/text.h"

#include <algorithm>
#include <chrono>

#include "runtime/formats/manifest.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

// Terminal columns of UTF-8 text, one for each character.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::ToString() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(Width(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  const auto add_line = [&](const auto& cell) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string padding(widths[i] - Width(cell(i)), ' ');
      if (i > 0) out += "  ";
      out += columns_[i].right ? padding + cell(i) : cell(i) + padding;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  add_line([&](size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](size_t i) { return row[i]; });
  return out;
}

std::string FormatAge(const std::string& utc, std::time_t now) {
  const std::optional<int64_t> time = ParseUtc(utc);
  if (!time) return utc;
  const int64_t age = now - *time;
  return age < 60 ? "just now" : FormatDuration(std::chrono::seconds(age)) + " ago";
}

std::string Count(size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::string Join(const std::vector<std::string>& parts, std::string_view by) {
  std::string out;
  for (const std::string& part : parts) (out += out.empty() ? "" : by) += part;
  return out;
}

}  // namespace cairn
