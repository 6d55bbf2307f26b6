#include "runtime/session/metrics.h"

#include <bit>

#include "runtime/formats/little_endian.h"
#include "runtime/settings_value.h"

namespace cairn {
namespace {

// One after the other: u8 length of the name, the name, u64 bits of the value, u64 step.
constexpr size_t kNumberBytes = 16;

bool IsValidName(std::string_view name) { return cairn_metric_name_is_valid(name.data(), name.size()) != 0; }

std::string Encode(const MetricValues& values) {
  std::string out;
  for (const auto& [name, metric] : values) {
    out += static_cast<char>(name.size());
    out += name;
    AppendLittleEndian<uint64_t>(out, std::bit_cast<uint64_t>(metric.value));
    AppendLittleEndian<uint64_t>(out, static_cast<uint64_t>(metric.step));
  }
  return out;
}

}  // namespace

Result<MetricValues> DecodeMetrics(std::string_view bytes) {
  MetricValues values;
  while (!bytes.empty()) {
    const size_t length = static_cast<unsigned char>(bytes.front());
    const std::string_view name = bytes.substr(1, length);
    if (bytes.size() < 1 + length + kNumberBytes || !IsValidName(name))
      return Status(Code::kDamage, "metrics that no program can have given");
    const auto step = static_cast<int64_t>(LittleEndianAt<uint64_t>(bytes, 1 + length + 8));
    if (step < 0) return Status(Code::kDamage, "a metric of step " + std::to_string(step));
    values[std::string(name)] = {std::bit_cast<double>(LittleEndianAt<uint64_t>(bytes, 1 + length)), step};
    bytes.remove_prefix(1 + length + kNumberBytes);
  }
  return values;
}

void MergeMetrics(const MetricValues& more, MetricValues* all, std::set<std::string>* left_out) {
  for (const auto& [name, metric] : more) {
    const auto found = all->find(name);
    if (found != all->end()) {
      if (metric.step > found->second.step) found->second = metric;
    } else if (all->size() < kMaxMergedMetrics) {
      all->emplace(name, metric);
    } else {
      left_out->insert(name);
    }
  }
}

Status Metrics::Set(const std::string& name, const Manifest::Metric& metric) {
  if (!IsValidName(name)) {
    return {Code::kInvalid,
            "metric \"" + name +
                "\": a name is 1 to 100 printable ASCII characters without space, comma and colon"};
  }
  MetricValues values = values_;
  values[name] = metric;
  std::string bytes = Encode(values);
  if (bytes.size() > kMaxMetricsBytes) {
    return {Code::kInvalid, "metric \"" + name + "\" is one too many: names and values take " +
                                std::to_string(bytes.size()) + " bytes, and " +
                                std::to_string(kMaxMetricsBytes) + " are possible"};
  }
  values_ = std::move(values);
  bytes_ = std::make_shared<const std::string>(std::move(bytes));
  return OkStatus();
}

}  // namespace cairn
