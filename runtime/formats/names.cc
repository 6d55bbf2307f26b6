#include "runtime/formats/names.h"

#include <cinttypes>
#include <cstdio>

namespace cairn::names {
namespace {

constexpr std::string_view kEpochPrefix = "EPOCH-";
constexpr std::string_view kJournalPrefix = "journal-";
constexpr std::string_view kJournalSuffix = ".jsonl";
constexpr std::string_view kLeftPrefix = "left-";
constexpr std::string_view kDeadPrefix = "dead-";
constexpr std::string_view kRemovedPrefix = "removed-e";
constexpr std::string_view kStagingPrefix = ".staging-";
constexpr std::string_view kShardPrefix = "shard-";
constexpr std::string_view kShardSuffix = "-model-00001-of-00001.safetensors";
constexpr std::string_view kSumsSuffix = ".sums";
constexpr std::string_view kStrikeSuffix = ".json";

std::string Padded(std::string_view prefix, uint64_t number, int width) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%0*" PRIu64, width, number);
  return std::string(prefix) + digits;
}

// A number as Padded writes it: decimal, at least `width` digits, no more zeros than the width asks for.
std::optional<uint64_t> ParseNumber(std::string_view digits, size_t width, uint64_t max) {
  if (digits.size() < width || digits.size() > 19 || digits.empty()) return std::nullopt;
  if (digits.size() > width && digits[0] == '0') return std::nullopt;
  uint64_t value = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  if (value > max) return std::nullopt;
  return value;
}

bool Strip(std::string_view& name, std::string_view prefix, std::string_view suffix) {
  if (name.size() < prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix)) {
    return false;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  return true;
}

std::optional<uint32_t> ParseNumbered(std::string_view name, std::string_view prefix, std::string_view suffix,
                                      size_t width) {
  if (!Strip(name, prefix, suffix)) return std::nullopt;
  const std::optional<uint64_t> number = ParseNumber(name, width, UINT32_MAX);
  if (!number || *number == 0) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsId(std::string_view id) { return IsHex(id, 8); }

}  // namespace

std::string EpochFile(uint32_t epoch) { return Padded(kEpochPrefix, epoch, 8); }
std::string AliveFile(uint32_t epoch) { return Padded("ALIVE-", epoch, 8); }
std::string ParentFile(uint32_t epoch) { return Padded("PARENT-", epoch, 8); }

std::optional<uint32_t> ParseEpochFile(std::string_view name) {
  return ParseNumbered(name, kEpochPrefix, "", 8);
}

std::string LeftFolder(uint32_t epoch) { return Padded(kLeftPrefix, epoch, 8); }

std::optional<uint32_t> ParseLeftFolder(std::string_view name) {
  return ParseNumbered(name, kLeftPrefix, "", 8);
}

std::string JournalPart(const JournalLines& lines) {
  return Padded(Padded(kJournalPrefix, lines.epoch, 8) + "-", lines.part, 5) + std::string(kJournalSuffix);
}

std::optional<JournalLines> ParseJournalPart(std::string_view name) {
  if (!Strip(name, kJournalPrefix, kJournalSuffix)) return std::nullopt;
  const size_t dash = name.find('-');
  if (dash == name.npos) return std::nullopt;
  const std::optional<uint32_t> epoch = ParseNumbered(name.substr(0, dash), "", "", 8);
  const std::optional<uint32_t> part = ParseNumbered(name.substr(dash + 1), "", "", 5);
  if (!epoch || !part) return std::nullopt;
  return JournalLines{*epoch, *part};
}

std::string Attempt::ToString() const {
  return Padded("step-", static_cast<uint64_t>(step), 12) + ".e" + std::to_string(epoch) + "." + id;
}

std::optional<Attempt> ParseAttempt(std::string_view name) {
  if (!Strip(name, "step-", "")) return std::nullopt;
  const size_t first = name.find('.');
  const size_t second = first == name.npos ? first : name.find('.', first + 1);
  if (second == name.npos || name.substr(first, 2) != ".e") return std::nullopt;
  const std::optional<uint64_t> step = ParseNumber(name.substr(0, first), 12, INT64_MAX);
  const std::optional<uint64_t> epoch =
      ParseNumber(name.substr(first + 2, second - first - 2), 1, UINT32_MAX);
  const std::string_view id = name.substr(second + 1);
  if (!step || !epoch || *epoch == 0 || !IsId(id)) return std::nullopt;
  return Attempt{static_cast<int64_t>(*step), static_cast<uint32_t>(*epoch), std::string(id)};
}

std::string Dead(std::string_view attempt) { return std::string(kDeadPrefix) + std::string(attempt); }

std::optional<Attempt> ParseDead(std::string_view name) {
  if (!Strip(name, kDeadPrefix, "")) return std::nullopt;
  return ParseAttempt(name);
}

std::string Removed(uint32_t by, std::string_view attempt) {
  return std::string(kRemovedPrefix) + std::to_string(by) + "-" + std::string(attempt);
}

std::optional<Removal> ParseRemoved(std::string_view name) {
  if (!Strip(name, kRemovedPrefix, "")) return std::nullopt;
  const size_t dash = name.find('-');
  if (dash == name.npos) return std::nullopt;
  const std::optional<uint64_t> by = ParseNumber(name.substr(0, dash), 1, UINT32_MAX);
  std::optional<Attempt> attempt = ParseAttempt(name.substr(dash + 1));
  if (!by || *by == 0 || !attempt) return std::nullopt;
  return Removal{static_cast<uint32_t>(*by), *std::move(attempt)};
}

std::string StagingFolder(const Staging& staging) {
  return std::string(kStagingPrefix) + staging.claim + "-" + std::to_string(staging.rank);
}

std::optional<Staging> ParseStagingFolder(std::string_view name) {
  if (!Strip(name, kStagingPrefix, "")) return std::nullopt;
  const size_t dash = name.find('-');
  if (dash == name.npos || !IsHex(name.substr(0, dash), 16)) return std::nullopt;
  const std::optional<uint64_t> rank = ParseNumber(name.substr(dash + 1), 1, UINT32_MAX);
  if (!rank) return std::nullopt;
  return Staging{std::string(name.substr(0, dash)), static_cast<uint32_t>(*rank)};
}

std::string Shard(uint32_t number) { return Padded(kShardPrefix, number, 5) + std::string(kShardSuffix); }
std::string Sums(uint32_t number) { return Padded(kShardPrefix, number, 5) + std::string(kSumsSuffix); }

std::optional<uint32_t> ParseShard(std::string_view name) {
  return ParseNumbered(name, kShardPrefix, kShardSuffix, 5);
}
std::optional<uint32_t> ParseSums(std::string_view name) {
  return ParseNumbered(name, kShardPrefix, kSumsSuffix, 5);
}

std::string Strike(std::string_view attempt) {
  return std::string(kStrikes) + "/" + std::string(attempt) + std::string(kStrikeSuffix);
}

std::optional<Attempt> ParseStrike(std::string_view file) {
  if (!Strip(file, "", kStrikeSuffix)) return std::nullopt;
  return ParseAttempt(file);
}

std::string Lease(std::string_view attempt, std::string_view id) {
  return std::string(kLeases) + "/" + std::string(attempt) + "." + std::string(id);
}

std::optional<Attempt> ParseLease(std::string_view file) {
  const size_t dot = file.rfind('.');
  if (dot == file.npos || !IsId(file.substr(dot + 1))) return std::nullopt;
  return ParseAttempt(file.substr(0, dot));
}

bool IsValidTag(std::string_view tag) {
  if (tag.empty() || tag.size() > 100 || tag[0] == '.') return false;
  for (char c : tag) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && std::string_view("._+=-").find(c) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace cairn::names
