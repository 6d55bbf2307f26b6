#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/target.h"
#include "runtime/command/known_runs.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/summary.h"
#include "runtime/command/text.h"
#include "runtime/formats/manifest.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  KnownRun run;  // the last that used the directory
  std::string state;
  size_t checkpoints = 0;
  std::optional<int64_t> newest_step;
};

// "finished", "unfinished", "never saved", "gone" (the directory is not there), or "unreadable".
Row LookAt(KnownRun run) {
  Row row{std::move(run), "unreadable"};
  const Result<RunDirectory> dir = OpenRun(row.run.dir);
  if (!dir.ok()) {
    if (dir.status().code() == Code::kNotFound) row.state = "gone";
    return row;
  }
  const Result<Listing> listing = ListCheckpoints(*dir);
  if (!listing.ok()) return row;
  const Result<Pointers> pointers = ReadPointers(*dir, *listing);
  if (!pointers.ok()) return row;
  row.checkpoints = listing->checkpoints.size();
  row.state = pointers->finished ? "finished" : row.checkpoints == 0 ? "never saved" : "unfinished";
  for (const Checkpoint& c : listing->checkpoints) {
    if (c.name == pointers->newest) row.newest_step = c.id.step;
  }
  return row;
}

// One for each directory, the one used last first.
std::vector<Row> Rows(const std::vector<KnownRun>& runs) {
  std::vector<Row> rows;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    const auto same = [&](const Row& row) { return row.run.dir == run->dir; };
    if (std::none_of(rows.begin(), rows.end(), same)) rows.push_back(LookAt(*run));
  }
  return rows;
}

std::string Utc(std::time_t time) {
  std::tm tm{};
  char text[32];
  gmtime_r(&time, &tm);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm));
}

Result<int> Runs(bool json) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<KnownRun> runs, ReadKnownRuns());
  const std::vector<Row> rows = Rows(runs);
  if (json) {
    Json out = Json::array();
    for (const Row& row : rows) {
      out.push_back({{"dir", row.run.dir},
                     {"name", row.run.name},
                     {"job", row.run.job},
                     {"step_id", row.run.step},
                     {"restart", row.run.restart},
                     {"time", Utc(row.run.time)},
                     {"state", row.state},
                     {"newest_step", row.newest_step ? Json(*row.newest_step) : Json()},
                     {"checkpoints", row.checkpoints}});
    }
    PrintJson({{"runs", std::move(out)}});
    return kExitGood;
  }
  if (rows.empty()) {
    std::printf("No step of yours has run with --checkpoint yet, as far as this host knows.\n");
    return kExitGood;
  }
  Table table({{"JOB", true}, {"NAME"}, {"USED"}, {"STATE"}, {"STEP", true}, {"DIRECTORY"}});
  const std::time_t now = std::time(nullptr);
  for (const Row& row : rows) {
    table.AddRow({std::to_string(row.run.job) + "." + std::to_string(row.run.step), row.run.name,
                  FormatAge(Utc(row.run.time), now), row.state,
                  row.newest_step ? std::to_string(*row.newest_step) : "-", row.run.dir});
  }
  std::printf("%s", table.ToString().c_str());
  return kExitGood;
}

}  // namespace

void AddRuns(CLI::App* app, Invocation* invocation) {
  AddSubcommand(app, invocation, "runs",
                "List the runs that your steps have started, the last used first: which job, whether the run "
                "has finished,\n"
                "the newest step that a restart would take, and its directory. The list is kept in\n"
                "${XDG_STATE_HOME:-~/.local/state}/cairn/runs.jsonl on the host where srun ran.",
                "cairn runs", [=] { return Runs(invocation->json); });
}

}  // namespace cairn
