#include "runtime/command/known_runs.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/host/registry.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

constexpr uint64_t kMaxRegistryBytes = 256 << 20;

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string NameOf(const KnownRun& run) { return std::to_string(run.job) + "." + std::to_string(run.step); }

}  // namespace

std::vector<KnownRun> ParseKnownRuns(std::string_view registry) {
  std::vector<KnownRun> runs;
  while (!registry.empty()) {
    const size_t end = registry.find('\n');
    if (end == std::string_view::npos) break;  // a line in the making
    const nlohmann::json line = nlohmann::json::parse(registry.substr(0, end), nullptr, false);
    registry.remove_prefix(end + 1);
    try {
      runs.push_back({line.at("job").get<uint32_t>(), line.at("step").get<uint32_t>(),
                      line.at("restart").get<int>(), line.at("dir").get<std::string>(),
                      line.at("name").get<std::string>(), line.at("time").get<std::time_t>()});
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  return runs;
}

Result<std::vector<KnownRun>> ReadKnownRuns() {
  const std::string path = RegistryPath();
  if (path.empty()) return std::vector<KnownRun>();
  const Result<std::string> text = ReadAll(path, kMaxRegistryBytes);
  if (!text.ok() && text.status().code() == Code::kNotFound) return std::vector<KnownRun>();
  if (!text.ok()) return text.status();
  return ParseKnownRuns(*text);
}

std::optional<JobName> ParseJobName(const std::string& text) {
  const size_t dot = text.find('.');
  const auto job = ParseNumber(std::string_view(text).substr(0, dot));
  if (!job) return std::nullopt;
  if (dot == std::string::npos) return JobName{*job, std::nullopt};
  const auto step = ParseNumber(std::string_view(text).substr(dot + 1));
  if (!step) return std::nullopt;
  return JobName{*job, step};
}

Result<FoundRun> FindRun(const std::string& job_or_dir) {
  std::error_code ignored;
  const auto job = ParseJobName(job_or_dir);
  if (!job || std::filesystem::is_directory(job_or_dir, ignored)) return FoundRun{job_or_dir, std::nullopt};
  CAIRN_ASSIGN_OR_RETURN(const std::vector<KnownRun> runs, ReadKnownRuns());
  std::map<std::string, std::string> found;  // directory → its step, the last one that used it
  for (const KnownRun& run : runs) {
    if (run.job == job->job && (!job->step || run.step == *job->step)) found[run.dir] = NameOf(run);
  }
  if (found.empty()) {
    return Status(Code::kNotFound, "no run of job " + job_or_dir +
                                       " is known to this user on this host; `cairn runs` lists those that "
                                       "are, or give the run's directory");
  }
  if (found.size() == 1) return FoundRun{found.begin()->first, job};
  std::string names;
  for (const auto& [dir, name] : found) names += (names.empty() ? "" : ", ") + name + " in " + dir;
  return Status(Code::kInvalid, "job " + job_or_dir +
                                    " has several runs, name one as JOB.STEP or by its directory: " + names);
}

}  // namespace cairn
