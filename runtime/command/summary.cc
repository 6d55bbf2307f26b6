#include "runtime/command/summary.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/catalog/marks.h"

namespace cairn {

using Json = nlohmann::ordered_json;

Result<Pointers> ReadPointers(const RunDirectory& dir, const Listing& listing) {
  Pointers pointers;
  for (const Checkpoint& c : Candidates(listing)) {
    if (c.readable.code() == Code::kDamage) continue;  // a restart passes it over
    pointers.newest = c.name;
    break;
  }
  CAIRN_ASSIGN_OR_RETURN(pointers.tags, ReadTags(dir));
  CAIRN_ASSIGN_OR_RETURN(pointers.pins, ReadPins(dir));
  CAIRN_ASSIGN_OR_RETURN(pointers.finished, IsFinished(dir, listing));
  return pointers;
}

std::vector<std::string> TagsOf(const Checkpoint& checkpoint, const Pointers& pointers) {
  std::vector<std::string> tags;
  for (const auto& [tag, name] : pointers.tags) {
    if (name == checkpoint.name) tags.push_back(tag);
  }
  return tags;
}

std::string OriginText(const RunInfo& run) {
  if (!run.origin) return "";
  const Origin& origin = *run.origin;
  const std::string part = origin.only.empty() ? "" : ", " + origin.only + " alone";
  if (!origin.checkpoint.empty()) return "forked from " + origin.path + "@" + origin.checkpoint + part;
  return "imported from " + origin.path + " (" + origin.format + ")" + part;
}

Json RunJson(const RunInfo& run) {
  Json origin;
  if (run.origin) {
    const auto if_any = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    origin = {{"format", run.origin->format},
              {"path", run.origin->path},
              {"run_id", if_any(run.origin->run_id)},
              {"checkpoint", if_any(run.origin->checkpoint)},
              {"only", if_any(run.origin->only)}};
  }
  return {{"id", run.id}, {"name", run.name}, {"created", run.created}, {"origin", std::move(origin)}};
}

std::string DamageOf(const Checkpoint& checkpoint) {
  if (!checkpoint.struck.empty()) return checkpoint.struck;
  return checkpoint.readable.code() == Code::kDamage ? checkpoint.readable.message() : "";
}

std::vector<std::string> Flags(const Checkpoint& checkpoint, const Pointers& pointers) {
  std::vector<std::string> flags;
  if (checkpoint.name == pointers.newest) flags.emplace_back("newest");
  for (const std::string& tag : TagsOf(checkpoint, pointers)) flags.push_back("tag " + tag);
  if (pointers.pins.contains(checkpoint.name)) flags.emplace_back("pinned");
  if (checkpoint.orphan) flags.emplace_back("orphan");
  if (!DamageOf(checkpoint).empty()) {
    flags.emplace_back("damaged");
  } else if (checkpoint.readable.code() == Code::kMismatch) {
    flags.emplace_back("of a newer Cairn");
  } else if (!checkpoint.readable.ok()) {
    flags.emplace_back("unreadable");
  }
  return flags;
}

std::vector<std::string> MetricTexts(const Manifest& manifest) {
  std::vector<std::string> texts;
  for (const auto& [name, metric] : manifest.metrics) {
    char value[32];
    std::snprintf(value, sizeof value, "=%.6g", metric.value);
    texts.push_back(name + value);
  }
  return texts;
}

Json SummaryJson(const Checkpoint& checkpoint, const Pointers& pointers) {
  const Manifest& manifest = checkpoint.manifest;
  const std::string damage = DamageOf(checkpoint);
  const auto if_read = [&](const auto& value) { return checkpoint.readable.ok() ? Json(value) : Json(); };
  Json metrics = Json::object();
  for (const auto& [name, metric] : manifest.metrics)
    metrics[name] = {{"value", metric.value}, {"step", metric.step}};
  const bool unreadable = damage.empty() && !checkpoint.readable.ok();
  return {{"name", checkpoint.name},
          {"step", checkpoint.id.step},
          {"label", if_read(manifest.label)},
          {"epoch", checkpoint.id.epoch},
          {"time", if_read(manifest.time)},
          {"trigger", if_read(manifest.trigger)},
          {"bytes", if_read(manifest.total_bytes)},
          {"ranks", if_read(manifest.world_size)},
          {"metrics", if_read(metrics)},
          {"newest", checkpoint.name == pointers.newest},
          {"tags", TagsOf(checkpoint, pointers)},
          {"pinned", pointers.pins.contains(checkpoint.name)},
          {"orphan", checkpoint.orphan},
          {"damaged", damage.empty() ? Json() : Json(damage)},
          {"unreadable", unreadable ? Json(checkpoint.readable.message()) : Json()}};
}

}  // namespace cairn
