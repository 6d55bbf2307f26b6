#include "runtime/formats/manifest.h"

#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/formats/names.h"
#include "runtime/formats/sealed_json.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKind = "manifest";
// Version 2 has `writers`, and is written only where there are any: a reader of version 1 wants an index of all ranks.
constexpr uint64_t kVersion = 2;

// JSON has no word for what is no finite number.
Json NumberJson(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::optional<double> NumberOf(const Json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return kInfinity;
  if (json == "-inf") return -kInfinity;
  return std::nullopt;
}

Result<std::map<std::string, Manifest::Metric>> MetricsOf(const Json& object) {
  std::map<std::string, Manifest::Metric> metrics;
  const auto stored = object.find("metrics");  // from the first versions it is absent
  if (stored == object.end()) return metrics;
  for (const auto& [name, metric] : stored->items()) {
    const Json* value = metric.is_object() && metric.contains("value") ? &metric["value"] : nullptr;
    const std::optional<double> number = value == nullptr ? std::nullopt : NumberOf(*value);
    if (!number) return Status(Code::kDamage, "manifest: metric \"" + name + "\" has no value");
    JsonFields fields(metric, "manifest, metric \"" + name + "\"");
    metrics[name] = {*number, static_cast<int64_t>(fields.Unsigned("step", INT64_MAX))};
    CAIRN_RETURN_IF_ERROR(fields.status());
  }
  return metrics;
}

Result<std::map<std::string, Manifest::Output>> OutputsOf(const Json& object) {
  std::map<std::string, Manifest::Output> outputs;
  const auto stored = object.find("outputs");  // absent where there are none
  if (stored == object.end()) return outputs;
  for (const auto& [path, output] : stored->items()) {
    if (!output.is_object()) return Status(Code::kDamage, "manifest: output \"" + path + "\" is no object");
    JsonFields fields(output, "manifest, output \"" + path + "\"");
    outputs[path] = {fields.Unsigned("bytes"), fields.Hash("end_xxh3_128")};
    CAIRN_RETURN_IF_ERROR(fields.status());
  }
  return outputs;
}

Json FileJson(uint64_t bytes, const Hash128& hash) { return {{"bytes", bytes}, {"xxh3_128", hash.ToHex()}}; }

}  // namespace

Result<std::string> EncodeManifest(const Manifest& m) {
  Json shards = Json::array();
  for (const Manifest::File& file : m.shards) shards.push_back({{"name", file.name}, {"bytes", file.bytes}});
  Json metrics = Json::object();
  for (const auto& [name, metric] : m.metrics)
    metrics[name] = {{"value", NumberJson(metric.value)}, {"step", metric.step}};
  Json members = {{"run_id", m.run_id},
                  {"epoch", m.epoch},
                  {"step", m.step},
                  {"label", m.label},
                  {"world_size", m.world_size},
                  {"time", m.time},
                  {"trigger", m.trigger},
                  {"parent", m.parent},
                  {"tag", m.tag},
                  {"metrics", std::move(metrics)},
                  {"total_bytes", m.total_bytes},
                  {"cairn_version", m.cairn_version},
                  {"settings", Json(m.settings)},
                  {"index", FileJson(m.index_bytes, m.index_hash)},
                  {"blobs", FileJson(m.blobs_bytes, m.blobs_hash)},
                  {"shards", std::move(shards)}};
  for (const auto& [path, output] : m.outputs)
    members["outputs"][path] = {{"bytes", output.bytes}, {"end_xxh3_128", output.end.ToHex()}};
  if (m.writers > 0) members["writers"] = m.writers;
  CAIRN_ASSIGN_OR_RETURN(std::string text, SealJson(kKind, members, m.writers > 0 ? kVersion : 1));
  if (text.size() > kMaxManifestBytes) {
    return Status(Code::kInvalid,
                  "the manifest would have " + std::to_string(text.size()) +
                      " bytes, and no reader takes more than " + std::to_string(kMaxManifestBytes) + ": " +
                      std::to_string(m.shards.size()) + " files, " + std::to_string(m.metrics.size()) +
                      " metrics and " + std::to_string(m.outputs.size()) + " outputs are too many");
  }
  return text;
}

Result<Manifest> DecodeManifest(std::string_view text) {
  CAIRN_ASSIGN_OR_RETURN(const Json object, UnsealJson(kKind, text, kVersion));
  JsonFields fields(object, kKind);
  Manifest m;
  m.run_id = fields.String("run_id");
  m.epoch = static_cast<uint32_t>(fields.Unsigned("epoch", UINT32_MAX));
  m.step = static_cast<int64_t>(fields.Unsigned("step", INT64_MAX));
  m.label = fields.Signed("label");
  m.world_size = static_cast<uint32_t>(fields.Unsigned("world_size", UINT32_MAX));
  if (fields.Unsigned("version") > 1)
    m.writers = static_cast<uint32_t>(fields.Unsigned("writers", m.world_size));
  m.time = fields.String("time");
  m.trigger = fields.String("trigger");
  m.parent = fields.String("parent");
  m.tag = fields.String("tag");
  CAIRN_ASSIGN_OR_RETURN(m.metrics, MetricsOf(object));
  CAIRN_ASSIGN_OR_RETURN(m.outputs, OutputsOf(object));
  m.total_bytes = fields.Unsigned("total_bytes");
  m.cairn_version = fields.String("cairn_version");
  for (const auto& [name, value] : fields.Object("settings").items()) {
    if (value.is_string()) m.settings[name] = value.get<std::string>();
  }
  JsonFields index(fields.Object("index"), "manifest, index");
  m.index_bytes = index.Unsigned("bytes");
  m.index_hash = index.Hash("xxh3_128");
  JsonFields blobs(fields.Object("blobs"), "manifest, blobs");
  m.blobs_bytes = blobs.Unsigned("bytes");
  m.blobs_hash = blobs.Hash("xxh3_128");
  const Json& shards = fields.Array("shards");
  CAIRN_RETURN_IF_ERROR(fields.status());
  CAIRN_RETURN_IF_ERROR(index.status());
  CAIRN_RETURN_IF_ERROR(blobs.status());

  if (!m.parent.empty() && !names::ParseAttempt(m.parent)) {
    return Status(Code::kDamage, "manifest: parent \"" + m.parent + "\" is no name of a checkpoint");
  }
  m.shards.reserve(shards.size());
  for (const Json& shard : shards) {
    if (!shard.is_object()) return Status(Code::kDamage, "manifest: an entry of \"shards\" is no object");
    JsonFields entry(shard, "manifest, shards");
    m.shards.push_back({entry.String("name"), entry.Unsigned("bytes")});
    CAIRN_RETURN_IF_ERROR(entry.status());
    if (!names::ParseShard(m.shards.back().name)) {
      return Status(Code::kDamage, "manifest: \"" + m.shards.back().name + "\" is no name of a shard");
    }
  }
  return m;
}

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[sizeof "2026-03-01T12:00:00Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::optional<int64_t> ParseUtc(const std::string& text) {
  std::tm utc{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&utc);
}

}  // namespace cairn
