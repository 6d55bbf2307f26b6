#include "runtime/command/numbers.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace cairn {
namespace {

template <typename Number>
std::optional<Number> Parse(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::function<std::string(const std::string&)> WholeNumber(int64_t least, int64_t most) {
  return [=](const std::string& text) {
    const auto number = Parse<int64_t>(text);
    if (number && *number >= least && *number <= most) return std::string();
    return "\"" + text + "\" is no whole number from " + std::to_string(least) + " to " +
           std::to_string(most);
  };
}

std::string NotNegative(const std::string& text) {
  const auto number = Parse<double>(text);
  if (number && std::isfinite(*number) && *number >= 0) return "";
  return "\"" + text + "\" is no number from 0 on";
}

}  // namespace cairn
