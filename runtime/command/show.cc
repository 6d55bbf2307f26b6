#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/target.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/summary.h"
#include "runtime/command/text.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct ArrayRow {
  std::string name, dtype, order;
  Dims shape;  // as the application sees it
  uint64_t bytes = 0;
  size_t boxes = 0;  // of the layout; a box that several ranks held may lie in the files in several parts
};

std::vector<ArrayRow> ArrayRows(const SavedLayout& saved) {
  std::vector<ArrayRow> rows;
  for (const ArraySpec& array : saved.arrays) {
    ArrayRow row{array.name, std::string(DTypeName(array.dtype)), array.fortran ? "F" : "C", array.shape};
    if (array.fortran) {
      row.shape = Dims();
      for (int i = array.shape.size() - 1; i >= 0; --i) row.shape.push_back(array.shape[i]);
    }
    row.bytes = static_cast<uint64_t>(array.shape.Product()) * static_cast<uint64_t>(DTypeBytes(array.dtype));
    rows.push_back(std::move(row));
  }
  for (const SavedBox& box : saved.boxes) ++rows[box.array].boxes;
  for (size_t a = 0; a < rows.size(); ++a) {
    if (saved.grids.Has(a)) rows[a].boxes = Grid(saved.grids, saved.grids.rule_of[a]).cells();
  }
  return rows;
}

struct BlobRow {
  std::string name, policy;
  size_t ranks = 0;
  uint64_t bytes = 0;
};

std::vector<BlobRow> BlobRows(const Blobs& blobs) {
  std::vector<BlobRow> rows;
  for (const BlobItem& item : blobs.items) {
    BlobRow row{item.name, std::string(BlobPolicyName(item.policy))};
    for (const auto& bytes : item.by_rank) {
      if (!bytes) continue;
      ++row.ranks;
      row.bytes += bytes->size();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void PrintCheckpoint(const Chosen& chosen, const LoadedCheckpoint& loaded, const Pointers& pointers) {
  const Manifest& m = loaded.manifest;
  const auto line = [](const char* name, const std::string& text) {
    std::printf("%-10s  %s\n", name, text.c_str());
  };
  line("checkpoint", loaded.path);
  const std::string origin = OriginText(chosen.dir.info());
  line("run", "\"" + chosen.dir.info().name + "\"" + (origin.empty() ? "" : ", " + origin));
  line("step", std::to_string(m.step) + ", label " + std::to_string(m.label));
  line("saved", m.time + " (" + FormatAge(m.time, std::time(nullptr)) + "), trigger " + m.trigger);
  line("ranks", std::to_string(m.world_size));
  line("size", FormatBytes(m.total_bytes) + " in " + Count(m.shards.size(), "file") + " of arrays");
  for (const auto& [name, metric] : m.metrics) {
    char value[32];
    std::snprintf(value, sizeof value, "%.17g", metric.value);
    line("metric",
         name + "=" + value + ", measured after " + Count(static_cast<size_t>(metric.step), "step"));
  }
  for (const auto& [path, output] : m.outputs) line("output", path + ", " + FormatBytes(output.bytes));
  line("parent", m.parent.empty() ? "none: its life began fresh" : m.parent);
  if (const auto flags = Flags(chosen.checkpoint, pointers); !flags.empty()) line("flags", Join(flags));
  line("written by", "cairn " + m.cairn_version);
  for (const auto& [name, value] : m.settings) line("setting", name + "=" + value);

  Table arrays({{"ARRAY"}, {"DTYPE"}, {"SHAPE"}, {"ORDER"}, {"BOXES", true}, {"SIZE", true}});
  for (const ArrayRow& row : ArrayRows(loaded.index.saved)) {
    arrays.AddRow({row.name, row.dtype, row.shape.ToString(), row.order, std::to_string(row.boxes),
                   FormatBytes(row.bytes)});
  }
  std::printf("\n%s", arrays.ToString().c_str());

  if (!loaded.blobs.items.empty()) {
    Table blobs({{"BLOB"}, {"POLICY"}, {"RANKS", true}, {"SIZE", true}});
    for (const BlobRow& row : BlobRows(loaded.blobs)) {
      blobs.AddRow({row.name, row.policy, std::to_string(row.ranks), FormatBytes(row.bytes)});
    }
    std::printf("\n%s", blobs.ToString().c_str());
  }

  Table files({{"FILE"}, {"SIZE", true}});
  for (const Manifest::File& file : m.shards) files.AddRow({file.name, FormatBytes(file.bytes)});
  std::printf("\n%s", files.ToString().c_str());
}

Json CheckpointJson(const Chosen& chosen, const LoadedCheckpoint& loaded, const Pointers& pointers) {
  Json out = SummaryJson(chosen.checkpoint, pointers);
  out["dir"] = chosen.dir.path();
  out["path"] = loaded.path;
  out["run"] = RunJson(chosen.dir.info());
  out["parent"] = loaded.manifest.parent.empty() ? Json() : Json(loaded.manifest.parent);
  out["cairn_version"] = loaded.manifest.cairn_version;
  out["settings"] = loaded.manifest.settings;
  out["arrays"] = Json::array();
  for (const ArrayRow& row : ArrayRows(loaded.index.saved)) {
    out["arrays"].push_back({{"name", row.name},
                             {"dtype", row.dtype},
                             {"shape", std::vector<int64_t>(row.shape.begin(), row.shape.end())},
                             {"order", row.order},
                             {"boxes", row.boxes},
                             {"bytes", row.bytes}});
  }
  out["blobs"] = Json::array();
  for (const BlobRow& row : BlobRows(loaded.blobs)) {
    out["blobs"].push_back(
        {{"name", row.name}, {"policy", row.policy}, {"ranks", row.ranks}, {"bytes", row.bytes}});
  }
  out["outputs"] = Json::array();
  for (const auto& [path, output] : loaded.manifest.outputs)
    out["outputs"].push_back({{"path", path}, {"bytes", output.bytes}});
  out["files"] = Json::array();
  for (const Manifest::File& file : loaded.manifest.shards) {
    out["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  return out;
}

Result<int> Show(const std::string& target, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(target));
  CAIRN_ASSIGN_OR_RETURN(const Pointers pointers, ReadPointers(chosen.dir, chosen.listing));
  const Result<LoadedCheckpoint> loaded = LoadCheckpoint(chosen.dir, chosen.checkpoint.name);
  if (!loaded.ok() && loaded.status().code() == Code::kDamage) {
    return Status(Code::kDamage, chosen.checkpoint.name + " is damaged: " + loaded.status().message() +
                                     "; `cairn verify " + chosen.dir.path() + "@" + chosen.checkpoint.name +
                                     "` names all that is bad in it");
  }
  if (!loaded.ok()) return loaded.status();
  if (json) {
    PrintJson(CheckpointJson(chosen, *loaded, pointers));
  } else {
    PrintCheckpoint(chosen, *loaded, pointers);
  }
  return kExitGood;
}

}  // namespace

void AddShow(CLI::App* app, Invocation* invocation) {
  auto target = std::make_shared<std::string>();
  Subcommand show = AddSubcommand(
      app, invocation, "show",
      "Show one checkpoint: when and why it was saved and from which one its life went on, its\n"
      "arrays with element type, global shape and memory order, its blobs with what becomes of them\n"
      "on another number of ranks, its files, and the settings that it was saved under.",
      "cairn show /scratch/me/run7@1200", [=] { return Show(*target, invocation->json); });
  show.Positional("DIR[@STEP|@TAG]", target.get(), "which checkpoint; without @ the newest");
}

}  // namespace cairn
