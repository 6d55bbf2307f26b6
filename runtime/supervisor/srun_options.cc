#include "runtime/supervisor/srun_options.h"

#include <algorithm>
#include <string_view>

#include "runtime/settings.h"

namespace cairn {
namespace {

// Of srun 20.11 to 26.05 (src/common/slurm_opt.c): the options that do not take the next word, since they have no value, or one that may be left out;
// and those that take it. Between these versions none has changed sides.
constexpr std::string_view kShortWithout = "EHOQVXZhlsuv";
constexpr std::string_view kShortOptional = "IKk";
constexpr std::string_view kWithout[] = {"--async",
                                         "--bcast",
                                         "--compress",
                                         "--consolidate-segments",
                                         "--contiguous",
                                         "--debugger-test",
                                         "--disable-status",
                                         "--exact",
                                         "--exclusive",
                                         "--external-launcher",
                                         "--help",
                                         "--hold",
                                         "--immediate",
                                         "--interactive",
                                         "--kill-on-bad-exit",
                                         "--label",
                                         "--multi-prog",
                                         "--nice",
                                         "--no-allocate",
                                         "--no-kill",
                                         "--oom-kill-step",
                                         "--overcommit",
                                         "--overlap",
                                         "--oversubscribe",
                                         "--parsable",
                                         "--preserve-env",
                                         "--propagate",
                                         "--pty",
                                         "--quiet",
                                         "--quit-on-interrupt",
                                         "--reboot",
                                         "--resv-ports",
                                         "--send-libs",
                                         "--spread-job",
                                         "--spread-segments",
                                         "--stepmgr",
                                         "--test-only",
                                         "--unbuffered",
                                         "--usage",
                                         "--use-min-nodes",
                                         "--verbose",
                                         "--version",
                                         "--wait-for-children",
                                         "--whole",
                                         "--x11"};

constexpr std::string_view kWith[] = {"--accel-bind",
                                      "--account",
                                      "--acctg-freq",
                                      "--autocomplete",
                                      "--bb",
                                      "--bbf",
                                      "--bcast-exclude",
                                      "--begin",
                                      "--chdir",
                                      "--cluster",
                                      "--cluster-constraint",
                                      "--clusters",
                                      "--comment",
                                      "--constraint",
                                      "--container",
                                      "--container-id",
                                      "--context",
                                      "--core-spec",
                                      "--cores-per-socket",
                                      "--cpu-bind",
                                      "--cpu-freq",
                                      "--cpu_bind",
                                      "--cpus-per-gpu",
                                      "--cpus-per-task",
                                      "--deadline",
                                      "--delay-boot",
                                      "--dependency",
                                      "--distribution",
                                      "--epilog",
                                      "--error",
                                      "--exclude",
                                      "--export",
                                      "--extra",
                                      "--extra-node-info",
                                      "--gpu-bind",
                                      "--gpu-freq",
                                      "--gpus",
                                      "--gpus-per-node",
                                      "--gpus-per-socket",
                                      "--gpus-per-task",
                                      "--gres",
                                      "--gres-flags",
                                      "--het-group",
                                      "--hint",
                                      "--ignore-signals",
                                      "--input",
                                      "--job-name",
                                      "--jobid",
                                      "--licenses",
                                      "--mail-type",
                                      "--mail-user",
                                      "--mcs-label",
                                      "--mem",
                                      "--mem-bind",
                                      "--mem-per-cpu",
                                      "--mem-per-gpu",
                                      "--mem-update",
                                      "--mincpus",
                                      "--mpi",
                                      "--msg-timeout",
                                      "--network",
                                      "--nodefile",
                                      "--nodelist",
                                      "--nodes",
                                      "--ntasks",
                                      "--ntasks-per-core",
                                      "--ntasks-per-gpu",
                                      "--ntasks-per-node",
                                      "--ntasks-per-socket",
                                      "--ntasks-per-tres",
                                      "--open-mode",
                                      "--output",
                                      "--pack-group",
                                      "--partition",
                                      "--prefer",
                                      "--priority",
                                      "--profile",
                                      "--prolog",
                                      "--qos",
                                      "--relative",
                                      "--reservation",
                                      "--resources",
                                      "--runtime",
                                      "--segment",
                                      "--signal",
                                      "--slurmd-debug",
                                      "--sockets-per-node",
                                      "--switches",
                                      "--task-epilog",
                                      "--task-prolog",
                                      "--tasks-per-node",
                                      "--thread-spec",
                                      "--threads",
                                      "--threads-per-core",
                                      "--time",
                                      "--time-min",
                                      "--tmp",
                                      "--treewidth",
                                      "--tres-bind",
                                      "--tres-per-task",
                                      "--wait",
                                      "--wckey"};

bool Contains(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

struct LongOption {
  std::string name;
  bool takes_next = true;
};

// srun takes an unambiguous beginning for the whole name, as getopt_long does. What cannot be told is left as it is, and has a value.
LongOption Resolve(const std::string& name) {
  std::vector<LongOption> fits;
  const auto add = [&](std::string_view option, bool takes_next) {
    if (option.starts_with(name)) fits.push_back({std::string(option), takes_next});
  };
  for (const std::string_view option : kWithout) add(option, false);
  for (const std::string_view option : kWith) add(option, true);
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    if (!info.option.empty())
      add("--" + std::string(info.option), !info.argument.empty() && !info.argument.starts_with('['));
  }
  const auto whole =
      std::find_if(fits.begin(), fits.end(), [&](const LongOption& option) { return option.name == name; });
  if (whole != fits.end()) return *whole;
  return fits.size() == 1 ? fits.front() : LongOption{name};
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

SrunCommand ReadSrunCommand(const std::vector<std::string>& command) {
  SrunCommand out;
  size_t i = 1;
  const auto add = [&](const std::string& name, std::optional<std::string> value, bool takes_next) {
    const bool apart = takes_next && !value;
    if (apart && i + 1 < command.size()) value = command[i + 1];
    out.options.push_back({name, std::move(value), i, apart ? size_t{2} : size_t{1}});
  };
  for (; i < command.size() && command[i].starts_with('-') && command[i] != "-" && command[i] != "--";
       i += out.options.back().words) {
    const std::string& word = command[i];
    if (word.starts_with("--")) {
      const size_t equals = word.find('=');
      std::optional<std::string> value;
      if (equals != std::string::npos) value = word.substr(equals + 1);
      const LongOption option = Resolve(word.substr(0, equals));
      add(option.name, std::move(value), option.takes_next);
      continue;
    }
    for (size_t at = 1; at < word.size(); ++at) {
      const std::string name = {'-', word[at]};
      if (Contains(kShortWithout, word[at])) {
        add(name, std::nullopt, false);
        continue;
      }
      std::optional<std::string> value;
      if (at + 1 < word.size()) value = word.substr(at + 1);
      add(name, std::move(value), !Contains(kShortOptional, word[at]));
      break;
    }
  }
  out.options_end = std::min(i, command.size());
  const size_t program = out.options_end < command.size() && command[out.options_end] == "--"
                             ? out.options_end + 1
                             : out.options_end;
  if (program < command.size()) out.step_name = BaseName(command[program]);
  for (const SrunOption& option : out.options) {
    if (option.name == "-J" || option.name == "--job-name") out.step_name = option.value.value_or("");
  }
  return out;
}

}  // namespace cairn
