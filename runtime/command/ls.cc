#include <algorithm>
#include <cstdio>
#include <ctime>
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

void PrintListing(const RunDirectory& dir, const Listing& listing, const Pointers& pointers) {
  const std::string origin = OriginText(dir.info());
  std::printf("%s: run \"%s\", %s%s%s%s\n", dir.path().c_str(), dir.info().name.c_str(),
              Count(listing.checkpoints.size(), "checkpoint").c_str(), pointers.finished ? ", finished" : "",
              origin.empty() ? "" : ", ", origin.c_str());
  if (!listing.lost.empty()) {
    std::printf("%s was committed and is not there any more\n", listing.lost.c_str());
  }
  if (listing.checkpoints.empty()) return;
  const bool measured = std::any_of(listing.checkpoints.begin(), listing.checkpoints.end(),
                                    [](const Checkpoint& c) { return !c.manifest.metrics.empty(); });
  std::vector<Column> columns = {{"STEP", true}, {"LABEL", true}, {"LIFE", true}, {"SAVED"},
                                 {"TRIGGER"},    {"SIZE", true},  {"RANKS", true}};
  if (measured) columns.push_back({"METRICS"});
  columns.push_back({"FLAGS"});
  Table table(std::move(columns));
  const std::time_t now = std::time(nullptr);
  for (const Checkpoint& c : listing.checkpoints) {
    const auto if_read = [&](std::string text) { return c.readable.ok() ? text : "?"; };
    std::vector<std::string> row = {std::to_string(c.id.step),
                                    if_read(std::to_string(c.manifest.label)),
                                    std::to_string(c.id.epoch),
                                    if_read(FormatAge(c.manifest.time, now)),
                                    if_read(c.manifest.trigger),
                                    if_read(FormatBytes(c.manifest.total_bytes)),
                                    if_read(std::to_string(c.manifest.world_size))};
    if (measured) row.push_back(if_read(Join(MetricTexts(c.manifest))));
    row.push_back(Join(Flags(c, pointers)));
    table.AddRow(std::move(row));
  }
  std::printf("\n%s", table.ToString().c_str());
}

Result<int> Ls(const std::string& path, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(path));
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const Pointers pointers, ReadPointers(dir, listing));
  if (!json) {
    PrintListing(dir, listing, pointers);
    return kExitGood;
  }
  Json checkpoints = Json::array();
  for (const Checkpoint& c : listing.checkpoints) checkpoints.push_back(SummaryJson(c, pointers));
  PrintJson({{"dir", dir.path()},
             {"run", RunJson(dir.info())},
             {"finished", pointers.finished},
             {"lost", listing.lost.empty() ? Json() : Json(listing.lost)},
             {"checkpoints", std::move(checkpoints)}});
  return kExitGood;
}

}  // namespace

void AddLs(CLI::App* app, Invocation* invocation) {
  auto dir = std::make_shared<std::string>();
  Subcommand ls = AddSubcommand(
      app, invocation, "ls",
      "List the checkpoints of a run, newest first: step, the program's own label, epoch, when and\n"
      "why each was saved, its size, the number of ranks, its metrics, and its flags. `newest` is what\n"
      "a restart would take; an `orphan` lies on a branch that the run has left; a `damaged` one is passed "
      "over.",
      "cairn ls /scratch/me/run7", [=] { return Ls(*dir, invocation->json); });
  ls.Positional("DIR", dir.get(), "the run's directory (--checkpoint-dir)");
}

}  // namespace cairn
