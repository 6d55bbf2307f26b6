#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/target.h"
#include "runtime/command/known_runs.h"
#include "runtime/command/numbers.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/summary.h"
#include "runtime/command/text.h"
#include "runtime/formats/manifest.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct Which {
  std::string job, since;  // "" = all
  size_t at_most = SIZE_MAX;
};

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

// A time of day or a date, here or in UTC, or how long ago.
Result<std::time_t> ParseSince(const std::string& text) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm tm{};
    tm.tm_isdst = -1;  // as the zone has it then
    const char* end = strptime(text.c_str(), form, &tm);
    if (end != nullptr && *end == '\0') return text.back() == 'Z' ? timegm(&tm) : std::mktime(&tm);
  }
  const auto ago = ParseDuration(text);
  if (ago.ok()) return std::time(nullptr) - std::chrono::duration_cast<std::chrono::seconds>(*ago).count();
  return Status(Code::kInvalid, "--since: \"" + text +
                                    "\" is neither a date (2026-03-01, 2026-03-01T12:00, in UTC with "
                                    "2026-03-01T12:00:00Z) nor how long ago (90m, 12h)");
}

// One for each directory that was used so, the one used last first.
Result<std::vector<Row>> Rows(const std::vector<KnownRun>& runs, const Which& which) {
  std::optional<JobName> job;
  if (!which.job.empty() && !(job = ParseJobName(which.job)))
    return Status(Code::kInvalid, "--job: \"" + which.job + "\" is neither JOB nor JOB.STEP");
  std::time_t since = 0;
  if (!which.since.empty()) {
    CAIRN_ASSIGN_OR_RETURN(since, ParseSince(which.since));
  }
  std::vector<Row> rows;
  std::set<std::string> dirs;
  for (auto run = runs.rbegin(); run != runs.rend() && rows.size() < which.at_most; ++run) {
    if (run->time < since) continue;
    if (job && (run->job != job->job || (job->step && run->step != *job->step))) continue;
    if (dirs.insert(run->dir).second) rows.push_back(LookAt(*run));
  }
  return rows;
}

std::string Utc(std::time_t time) {
  std::tm tm{};
  char text[32];
  gmtime_r(&time, &tm);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm));
}

Result<int> Runs(const Which& which, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<KnownRun> runs, ReadKnownRuns());
  CAIRN_ASSIGN_OR_RETURN(const std::vector<Row> rows, Rows(runs, which));
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
    std::printf(runs.empty() ? "No step of yours has run with --checkpoint yet, as far as this host knows.\n"
                             : "None of the runs that this host knows of was used so.\n");
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
  auto which = std::make_shared<Which>();
  Subcommand runs =
      AddSubcommand(app, invocation, "runs",
                    "List the runs that your steps have started, the last used first: which job, whether the "
                    "run has finished,\n"
                    "the newest step that a restart would take, and its directory. The list is kept in\n"
                    "${XDG_STATE_HOME:-~/.local/state}/cairn/runs.jsonl on the host where srun ran.",
                    "cairn runs --since 12h", [=] { return Runs(*which, invocation->json); });
  runs.Option("--job", "JOB", &which->job, "only what this job, or JOB.STEP, has used");
  runs.Option("--since", "TIME", &which->since,
              "only what was used since: a date, as 2026-03-01 or 2026-03-01T12:00, or how long ago, as 12h");
  runs.Option("-n,--number", "N", &which->at_most, "no more than so many").Check(WholeNumber(1));
}

}  // namespace cairn
