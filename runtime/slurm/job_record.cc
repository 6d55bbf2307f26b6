#include "runtime/slurm/job_record.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>

namespace cairn {
namespace {

// "Key=value Key=value …". Values may hold blanks (a job's name, a command line): a word without "=" continues the value before it. Of two equal
// keys the first counts.
std::map<std::string, std::string, std::less<>> Fields(std::string_view line) {
  std::map<std::string, std::string, std::less<>> out;
  std::string key;
  while (!line.empty()) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, blank);
    line.remove_prefix(std::min(blank + 1, line.size()));
    const size_t equals = word.find('=');
    const bool is_key = equals != std::string_view::npos && equals > 0 && word[0] >= 'A' && word[0] <= 'Z' &&
                        word.substr(0, equals).find('/') == std::string_view::npos;
    if (is_key) {
      key = word.substr(0, equals);
      if (!out.emplace(key, word.substr(equals + 1)).second) key.clear();
    } else if (!key.empty()) {
      out[key].append(" ").append(word);
    }
  }
  return out;
}

template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "2026-11-30T06:59:27", UTC.
std::optional<int64_t> Time(const std::string& text) {
  std::tm tm{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&tm);
}

// "[D-]HH:MM:SS", "MM:SS", or seconds as "20" or "30 sec".
std::optional<std::chrono::seconds> Span(std::string_view text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto d = Number<int64_t>(text.substr(0, dash));
    if (!d) return std::nullopt;
    days = *d;
    text.remove_prefix(dash + 1);
  }
  text = text.substr(0, text.find(' '));
  int64_t seconds = 0;
  for (;;) {
    const size_t colon = text.find(':');
    const auto part = Number<int64_t>(text.substr(0, colon));
    if (!part) return std::nullopt;
    seconds = seconds * 60 + *part;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  return std::chrono::seconds(days * 86400 + seconds);
}

// Of "cpu=32,node=4,gres/gpu=8,gres/gpu:a100=8".
int Gpus(std::string_view tres) {
  constexpr std::string_view kKey = "gres/gpu=";
  const size_t at = tres.find(kKey);
  if (at == std::string_view::npos) return 0;
  tres.remove_prefix(at + kKey.size());
  return Number<int>(tres.substr(0, tres.find(','))).value_or(0);
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

JobRecord ToRecord(const std::map<std::string, std::string, std::less<>>& fields) {
  const auto text = [&](std::string_view key) {
    const auto f = fields.find(key);
    return f == fields.end() ? std::string() : f->second;
  };
  const auto text_or_none = [&](std::string_view key) {
    const std::string value = text(key);
    return value == "(null)" || value == "N/A" || value == "0" ? std::string() : value;
  };
  JobRecord r;
  r.job_id = Number<uint32_t>(text("JobId")).value_or(0);
  r.array_job_id = Number<uint32_t>(text("ArrayJobId"));
  r.array_task_id =
      Number<uint32_t>(text("ArrayTaskId"));  // a range while tasks are pending: no task's own record
  r.het_job_id = Number<uint32_t>(text("HetJobId"));
  r.het_job_offset = Number<uint32_t>(text("HetJobOffset"));
  r.name = text("JobName");
  const std::string user = text("UserId");
  r.user = user.substr(0, user.find('('));
  r.state = text("JobState");
  // Flags that scontrol prints in the place of RUNNING: the first while a signal, such as the grace time's, is on its way to the nodes.
  if (r.state == "SIGNALING" || r.state == "RESIZING" || r.state == "STOPPED") r.state = "RUNNING";
  r.reason = text("Reason");
  r.partition = text("Partition");
  r.account = text_or_none("Account");
  r.qos = text_or_none("QOS");
  r.memory_per_node = text("MinMemoryNode");
  r.memory_per_cpu = text("MinMemoryCPU");
  r.node_list = text("NodeList");
  r.batch_host = text("BatchHost");
  r.nodes = Number<int>(text("NumNodes")).value_or(0);  // a range while the job is pending
  r.cpus = Number<int>(text("NumCPUs")).value_or(0);
  const std::string tasks = text("NumTasks");  // "CPUs/Task=1" is no key, and follows it
  r.tasks = Number<int>(tasks.substr(0, tasks.find(' '))).value_or(0);
  r.gpus = Gpus(fields.contains("AllocTRES") ? text("AllocTRES") : text("TRES"));
  r.work_dir = text("WorkDir");
  r.exit_code = text("ExitCode");
  r.restarts = Number<int>(text("Restarts")).value_or(0);
  r.requeue = text("Requeue") == "1";
  r.batch = Number<int>(text("BatchFlag")).value_or(0) != 0;
  r.start_time = Time(text("StartTime"));
  r.end_time = Time(text("EndTime"));
  r.preempt_time = Time(text("PreemptTime"));
  r.time_limit = Span(text("TimeLimit"));
  return r;
}

// The value in the line `key   = value` of `scontrol show config`; "" when there is none.
std::string_view ConfigValue(std::string_view config, std::string_view key) {
  while (!config.empty()) {
    const std::string_view line = config.substr(0, config.find('\n'));
    config.remove_prefix(std::min(line.size() + 1, config.size()));
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos && Trim(line.substr(0, equals)) == key)
      return Trim(line.substr(equals + 1));
  }
  return "";
}

}  // namespace

Result<JobRecord> ParseJobRecord(std::string_view text, uint32_t job_id) {
  bool any = false;
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    const JobRecord r = ToRecord(Fields(Trim(text.substr(0, newline))));
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (r.job_id == 0 || r.state.empty()) continue;
    any = true;
    if (r.job_id == job_id) return r;
  }
  if (!any) return Status(Code::kInvalid, "scontrol did not answer with a job's record");
  return Status(Code::kNotFound, "scontrol's answer does not hold job " + std::to_string(job_id));
}

Result<PartitionRecord> ParsePartitionRecord(std::string_view text) {
  const auto fields = Fields(Trim(text.substr(0, text.find('\n'))));
  const auto name = fields.find("PartitionName");
  if (name == fields.end())
    return Status(Code::kInvalid, "scontrol did not answer with a partition's record");
  PartitionRecord r{name->second, std::chrono::seconds(0), ""};
  if (const auto grace = fields.find("GraceTime"); grace != fields.end()) {
    r.grace_time = Span(grace->second).value_or(std::chrono::seconds(0));
  }
  if (const auto mode = fields.find("PreemptMode"); mode != fields.end()) r.preempt_mode = mode->second;
  return r;
}

std::chrono::seconds ParseKillWait(std::string_view config) {
  return Span(ConfigValue(config, "KillWait")).value_or(std::chrono::seconds(30));
}

int ParseSlurmRelease(std::string_view config) {
  const std::string_view version = ConfigValue(config, "SLURM_VERSION");
  const size_t dot = std::min(version.find('.'), version.size());
  const auto year = Number<int>(version.substr(0, dot));
  const auto month = Number<int>(version.substr(std::min(dot + 1, version.size())).substr(0, 2));
  return year && month ? *year * 100 + *month : 0;
}

}  // namespace cairn
