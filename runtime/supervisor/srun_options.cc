#include "runtime/supervisor/srun_options.h"

#include <algorithm>
#include <string_view>

#include "runtime/settings.h"

namespace cairn {
namespace {

// Of srun 20.11 to 26.05 (src/common/slurm_opt.c): the options that do not take the next word, since they have no value, or one that may be left out.
// All others take it. Between these versions none has changed sides.
constexpr std::string_view kShortWithout = "EHOQVXZhlsuv";
constexpr std::string_view kShortOptional = "IKk";
constexpr std::string_view kLong[] = {"--async",
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

bool Contains(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

bool TakesNextWord(std::string_view name) {
  if (std::find(std::begin(kLong), std::end(kLong), name) != std::end(kLong)) return false;
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    if (!info.option.empty() && name.substr(2) == info.option)
      return !info.argument.empty() && !info.argument.starts_with('[');
  }
  return true;
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
      add(word.substr(0, equals), std::move(value), TakesNextWord(word));
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
