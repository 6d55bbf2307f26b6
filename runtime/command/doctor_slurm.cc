#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "runtime/command/doctor.h"
#include "runtime/command/text.h"
#include "runtime/io/file.h"
#include "runtime/settings.h"
#include "runtime/site.h"
#include "runtime/slurm/job_record.h"
#include "runtime/slurm/run_now.h"

namespace cairn {
namespace {

constexpr std::chrono::seconds kBound{10};
constexpr std::string_view kPluginFile = "spank_cairn.so";
constexpr int kMaxIncludeDepth = 8;
constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr std::chrono::seconds kShortKillWait{10};

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::map<std::string, std::string> ParseConfig(const std::string& text) {
  std::map<std::string, std::string> config;
  for (const std::string& line : Lines(text)) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos)
      config[Trimmed(std::string_view(line).substr(0, equals))] =
          Trimmed(std::string_view(line).substr(equals + 1));
  }
  return config;
}

std::vector<std::string> Glob(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

std::optional<PluginLine> FindIn(const std::string& path, int depth) {
  const auto text = ReadAll(path, kMaxConfigBytes);
  if (!text.ok() || depth > kMaxIncludeDepth) return std::nullopt;
  for (const std::string& line : Lines(*text)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string verb, what;
    words >> verb >> what;
    if (verb == "include") {
      const std::string pattern =
          what.starts_with('/') ? what : std::filesystem::path(path).parent_path().string() + "/" + what;
      for (const std::string& included : Glob(pattern)) {
        if (auto found = FindIn(included, depth + 1)) return found;
      }
    } else if ((verb == "optional" || verb == "required") &&
               std::filesystem::path(what).filename() == kPluginFile) {
      PluginLine plugin{verb == "required", what, {}};
      for (std::string argument; words >> argument;) plugin.arguments.push_back(argument);
      return plugin;
    }
  }
  return std::nullopt;
}

// "22.05" of 0x160508 or of "22.05.8": Slurm loads a plugin only when this is its own.
std::string MajorMinor(uint32_t version) {
  char text[16];
  std::snprintf(text, sizeof text, "%u.%02u", version >> 16 & 0xff, version >> 8 & 0xff);
  return text;
}
std::string MajorMinor(const std::string& version) {
  const size_t minor = version.find('.');
  return minor == std::string::npos ? version : version.substr(0, version.find('.', minor + 1));
}

// The Slurm that the plugin was built for, or why it cannot be told.
Result<std::string> BuiltFor(const std::string& path) {
  // Slurm's own functions, which the plugin calls, are not here: lazily they need not be.
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return Status(Code::kInvalid, dlerror());
  const auto* version = static_cast<const uint32_t*>(dlsym(handle, "plugin_version"));
  Result<std::string> built = version == nullptr
                                  ? Result<std::string>(Status(Code::kInvalid, path + " is no Slurm plugin"))
                                  : Result<std::string>(MajorMinor(*version));
  dlclose(handle);
  return built;
}

std::string Get(const SlurmFacts& slurm, const std::string& key) {
  const auto it = slurm.config.find(key);
  return it == slurm.config.end() ? "" : it->second;
}

struct Partition {
  PartitionRecord record;
  int tier = 0;  // PriorityTier
};

std::vector<Partition> Partitions(const std::string& text) {
  constexpr std::string_view kTier = " PriorityTier=";
  std::vector<Partition> partitions;
  for (const std::string& line : Lines(text)) {
    auto record = ParsePartitionRecord(line);
    if (!record.ok()) continue;
    const size_t tier = line.find(kTier);
    partitions.push_back(
        {*std::move(record), tier == std::string::npos ? 0 : std::atoi(line.c_str() + tier + kTier.size())});
  }
  return partitions;
}

Check CheckPreemption(const SlurmFacts& slurm) {
  const std::string type = Get(slurm, "PreemptType"), mode = Get(slurm, "PreemptMode");
  Check check{"preemption", Finding::kGood, "PreemptType=" + type + ", PreemptMode=" + mode, ""};
  if (type == "preempt/none" || type == "(null)" || type.empty()) {
    check.text += ": jobs are not preempted here";
    return check;
  }
  if (mode.find("CANCEL") != std::string::npos) {
    check.finding = Finding::kWarning;
    check.remedy = "a preempted job is saved and then cancelled; PreemptMode=REQUEUE would bring it back";
  } else if (mode.find("SUSPEND") != std::string::npos) {
    check.finding = Finding::kWarning;
    check.remedy =
        "a preempted job is suspended without a word: it is saved only at its interval; PreemptMode=REQUEUE "
        "would save and move it";
  }
  return check;
}

Check CheckGrace(const SlurmFacts& slurm) {
  std::vector<std::string> with, without;
  const std::vector<Partition> partitions = Partitions(slurm.partitions);
  int top = INT_MAX;  // of the tiers: with preempt/partition_prio nobody preempts it
  if (Get(slurm, "PreemptType") == "preempt/partition_prio") {
    top = 0;
    for (const Partition& p : partitions) top = std::max(top, p.tier);
  }
  for (const Partition& p : partitions) {
    if (p.record.grace_time.count() > 0) {
      with.push_back(p.record.name + " " + FormatDuration(p.record.grace_time));
    } else if (p.record.preempt_mode != "OFF" && p.tier < top) {
      without.push_back(p.record.name);
    }
  }
  const bool preempts = Get(slurm, "PreemptType") != "preempt/none" && Get(slurm, "PreemptMode") != "OFF";
  Check check{"grace time", Finding::kGood,
              with.empty() ? "no partition has a GraceTime" : "GraceTime: " + Join(with), ""};
  if (preempts && !without.empty()) {
    check.finding = Finding::kWarning;
    check.text += "; none in " + Join(without);
    check.remedy =
        "a job that is preempted there has only KillWait to save in: give the partitions whose jobs are "
        "preempted a GraceTime";
  }
  return check;
}

// What the plugin will make of its line, and which partitions it names that Slurm does not have.
std::vector<Check> CheckArguments(const SlurmFacts& slurm, const std::string& stack,
                                  std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  cairn_site site;
  cairn_site_parse(&site, static_cast<int>(pointers.size()), pointers.data(), nullptr);
  if (*site.fault != '\0') {
    return {{"plugin line", Finding::kProblem, stack + ": " + site.fault,
             "correct it: until then no job is protected, and users are told so"}};
  }
  std::vector<Check> checks;
  const std::vector<Partition> partitions = Partitions(slurm.partitions);
  for (const std::string& argument : arguments) {
    size_t length = 0;
    const char* name = cairn_site_partition(argument.c_str(), &length);
    if (name == nullptr || partitions.empty()) continue;
    const bool known = std::any_of(partitions.begin(), partitions.end(), [&](const Partition& p) {
      return p.record.name == std::string_view(name, length);
    });
    if (!known) {
      checks.push_back({"plugin line", Finding::kProblem, argument + ": Slurm has no such partition",
                        "correct the name: as it is, the argument counts for no job"});
    }
  }
  return checks;
}

}  // namespace

SlurmFacts AskSlurm() {
  SlurmFacts slurm;
  const Result<std::string> config = RunNow({"scontrol", "show", "config"}, kBound);
  slurm.installed = config.ok() || config.status().code() != Code::kNotFound;
  if (!config.ok()) {
    slurm.fault = config.status().message();
    return slurm;
  }
  slurm.config = ParseConfig(*config);
  const Result<std::string> partitions = RunNow({"scontrol", "show", "partition", "-o"}, kBound);
  if (partitions.ok()) slurm.partitions = *partitions;
  return slurm;
}

std::optional<PluginLine> FindPluginLine(const std::string& path) { return FindIn(path, 0); }

std::vector<Check> CheckSlurm(const SlurmFacts& slurm) {
  if (!slurm.installed) {
    return {{"Slurm", Finding::kWarning, "there is no Slurm on this host (no scontrol in PATH)",
             "programs can still be started by `cairn host --print-env`; nothing will be requeued"}};
  }
  if (!slurm.fault.empty()) {
    return {{"Slurm", Finding::kProblem, "Slurm gave no answer: " + slurm.fault,
             "look at slurmctld, and at SLURM_CONF"}};
  }
  std::vector<Check> checks;
  checks.push_back({"Slurm", Finding::kGood,
                    "Slurm " + Get(slurm, "SLURM_VERSION") + ", cluster " + Get(slurm, "ClusterName"), ""});
  checks.push_back(CheckPreemption(slurm));
  checks.push_back(CheckGrace(slurm));

  std::string config_text;
  for (const auto& [key, value] : slurm.config) config_text += key + " = " + value + "\n";
  const std::chrono::seconds kill_wait = ParseKillWait(config_text);
  Check kill{"KillWait", Finding::kGood, FormatDuration(kill_wait) + " between SIGTERM and SIGKILL", ""};
  if (kill_wait < kShortKillWait) {
    kill.finding = Finding::kWarning;
    kill.remedy = "a job without a grace time must save within it; Slurm's default is 30 s";
  }
  checks.push_back(kill);

  Check requeue{"JobRequeue", Finding::kGood, "batch jobs may be requeued", ""};
  if (Get(slurm, "JobRequeue") == "0") {
    requeue = {"JobRequeue", Finding::kWarning, "JobRequeue=0: batch jobs are not requeued unless they ask",
               "submit with `sbatch --requeue`, or set JobRequeue=1 in slurm.conf"};
  }
  checks.push_back(requeue);

  Check bad_exit{"KillOnBadExit", Finding::kGood, "KillOnBadExit=1: a step ends when one of its ranks dies",
                 ""};
  if (Get(slurm, "KillOnBadExit") != "1") {
    bad_exit = {"KillOnBadExit", Finding::kWarning,
                "KillOnBadExit=0: when one rank dies, the others may wait for it for ever",
                "start with `srun -K1`, or set KillOnBadExit=1 in slurm.conf"};
  }
  checks.push_back(bad_exit);
  return checks;
}

std::vector<Check> CheckPlugin(const SlurmFacts& slurm, const std::string& stack,
                               const std::optional<PluginLine>& plugin) {
  if (!plugin) {
    return {{"plugin", Finding::kProblem,
             "no line of " + stack + " (its includes followed) loads " + std::string(kPluginFile),
             "srun does not know --checkpoint: add `optional <libdir>/slurm/" + std::string(kPluginFile) +
                 "` and restart slurmd on the nodes"}};
  }
  const Result<std::string> built = BuiltFor(plugin->path);
  if (!built.ok()) {
    return {{"plugin", Finding::kProblem, plugin->path + " cannot be loaded: " + built.status().message(),
             "install Cairn's plugin there, or correct the line in " + stack}};
  }
  std::vector<Check> checks;
  const std::string running = MajorMinor(Get(slurm, "SLURM_VERSION"));
  if (!running.empty() && *built != running) {
    checks.push_back({"plugin", Finding::kProblem,
                      plugin->path + " was built for Slurm " + *built + ", and " + running + " is running",
                      "Slurm refuses it: build it against the headers of Slurm " + running});
  } else {
    checks.push_back({"plugin", Finding::kGood, plugin->path + ", built for Slurm " + *built, ""});
  }
  const std::vector<Check> line = CheckArguments(slurm, stack, plugin->arguments);
  checks.insert(checks.end(), line.begin(), line.end());
  if (plugin->required) {
    checks.push_back({"plugin stack", Finding::kWarning, "the plugin's line begins with `required`",
                      "make it `optional`: otherwise a missing or unfit file stops every job of the host, "
                      "and drains nodes"});
  }
  return checks;
}

}  // namespace cairn
