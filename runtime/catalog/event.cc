#include "runtime/catalog/event.h"

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace cairn {
namespace {

std::string Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char seconds[sizeof "2026-03-01T12:00:00"], text[sizeof seconds + 32];
  std::strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text, sizeof text, "%s.%03dZ", seconds, static_cast<int>(now.tv_nsec / 1'000'000));
  return text;
}

}  // namespace

std::optional<int64_t> ParseEventTime(const std::string& text) {
  std::tm utc{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (end == nullptr) return std::nullopt;
  int64_t milliseconds = 0;
  if (*end == '.') {
    for (int digit = 0; digit < 3; ++digit) {
      if (*++end < '0' || *end > '9') return std::nullopt;
      milliseconds = 10 * milliseconds + (*end - '0');
    }
    ++end;
  }
  if (std::string_view(end) != "Z") return std::nullopt;
  return 1000 * static_cast<int64_t>(timegm(&utc)) + milliseconds;
}

std::string JsonText(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status AppendEvent(const RunDirectory& dir, std::string_view event, uint32_t epoch,
                   const JournalFields& fields, std::string_view time) {
  std::string line = "{\"event\":" + JsonText(event) +
                     ",\"time\":" + JsonText(time.empty() ? Now() : std::string(time)) +
                     ",\"epoch\":" + std::to_string(epoch);
  for (const auto& [name, value] : fields) line += "," + JsonText(name) + ":" + value;
  return dir.Journal(epoch, line + "}");
}

}  // namespace cairn
