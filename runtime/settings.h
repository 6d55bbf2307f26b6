// Settings: the resolved values of settings.def for one step, parsed and checked.
//
// The forms of each type of settings.def are in runtime/settings_value.h. "(null)", as Slurm hands on a bare option, reads as "".
// Pure; any thread.
#ifndef CAIRN_RUNTIME_SETTINGS_H_
#define CAIRN_RUNTIME_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/write_engine.h"

namespace cairn {

struct SettingInfo {
  std::string_view id, option, env, key;
  std::string_view argument, fallback, help;
};

enum SettingId : int {
#define CAIRN_SETTING(id, option, env, key, type, argument, fallback, help) kSetting_##id,
#include "runtime/settings.def"
#undef CAIRN_SETTING
  kSettingCount
};

// Any kSetting_*.
const SettingInfo& GetSettingInfo(SettingId id);

// OK, or kInvalid with a text that names the option (the variable, where there is none), the value and the accepted forms.
Status CheckSetting(SettingId id, std::string_view value);

using Nanoseconds = std::chrono::nanoseconds;

enum Trigger : uint32_t {  // bits of Settings::on
  kTriggerPreempt = 1,
  kTriggerTimeLimit = 2,
  kTriggerRequest = 4,
  kTriggerInterval = 8,
  kTriggerEnd = 16,
  kTriggerAll = 31
};
std::string_view TriggerName(Trigger trigger);  // "preempt", …

enum Match : uint32_t { kMatchStrict = 0, kAllowMissing = 1, kAllowExtra = 2 };  // bits of Settings::match
enum class Resume { kAuto, kNever, kRequire, kStep };
enum class S3Style { kAuto, kPath, kVirtual };
enum class ExchangeBy { kAuto, kTcp, kMpi };
enum class After { kAuto, kRequeue, kWait, kExit };

// One rule of --checkpoint-keep (runtime/settings_value.h); a checkpoint is kept when any of them keeps it.
struct KeepRule {
  enum Kind { kLast, kEveryTime, kEverySteps, kBest };
  Kind kind = kLast;
  int64_t number = 0;    // kLast, kBest: checkpoints; kEveryTime: nanoseconds; kEverySteps: steps
  std::string metric;    // kBest
  bool highest = false;  // kBest: the highest values are the best ones, else the lowest

  friend bool operator==(const KeepRule&, const KeepRule&) = default;
};
using KeepRules = std::vector<KeepRule>;

// kInvalid as CheckSetting says, with `name` for the setting.
Result<KeepRules> ParseKeep(const std::string& name, std::string_view value);

// Of --checkpoint-copy.
struct CopyRule {
  std::string to;       // "" = nowhere
  Nanoseconds every{};  // a copy at most so often; 0 = after each save

  friend bool operator==(const CopyRule&, const CopyRule&) = default;
};

// As ParseKeep.
Result<CopyRule> ParseCopy(const std::string& name, std::string_view value);

// For people: "the last 2, one every 500 steps, one every 6 h 0 m, the best 3 by val_loss (min)".
std::string DescribeKeep(const KeepRules& rules);

// The parsed values. Fields that a setting leaves to the runtime ("auto") are empty optionals.
struct Settings {
  bool enabled = false;
  bool interval_auto = false;             // Young/Daly
  std::optional<Nanoseconds> interval;    // by time
  std::optional<int64_t> interval_steps;  // by steps
  std::string dir;
  std::string from;  // "" = none
  Resume resume = Resume::kAuto;
  int64_t resume_step = 0;        // with kStep
  std::optional<uint32_t> match;  // as the program asks
  bool require = false;
  std::string local = "auto";  // auto, none, or a directory
  uint32_t files =
      0;  // at least so many of arrays in a save, and one for each node; 0 = each rank has its own
  bool partner = false;
  uint32_t on = kTriggerAll;
  KeepRules keep;
  CopyRule copy;
  KeepRules copy_keep;
  std::optional<uint32_t> mode;
  std::optional<Nanoseconds> notice;
  After after = After::kAuto;
  int exit_code = 0;  // with kExit
  int max_lives = 100;
  int strikes = 3;
  Nanoseconds mtbf{};
  int signal = 0;  // 0 = none
  ExchangeBy exchange = ExchangeBy::kTcp;
  Writer writer = Writer::kAuto;
  uint64_t local_limit = 0;  // bytes of a node; 0 = none
  uint64_t drain_limit = 0;  // bytes per second and node; 0 = none
  Nanoseconds boundary_wait{};
  Nanoseconds save_timeout{};
  Nanoseconds open_within{};
  int copy_threads = 1;
  std::optional<std::string> s3_endpoint;
  S3Style s3_style = S3Style::kAuto;
  int s3_connections = 8;
  Nanoseconds s3_stall{};
  Nanoseconds s3_deadline{};
  std::vector<int64_t> rehearsal;  // in rising order
  std::string log = "info";
  std::map<std::string, std::string> given;  // the texts that are not the fallbacks, by variable: for people
};

// Reads every setting through `get` (name of the variable → value or nothing): SLURM_<env> first (what srun's side resolved), then <env>,
// then the fallback. An empty variable is as good as none. kInvalid as CheckSetting says, naming the variable.
Result<Settings> ParseSettings(const std::function<std::optional<std::string>(const std::string&)>& get);

// DURATION. kInvalid names the text and the accepted forms.
Result<Nanoseconds> ParseDuration(std::string_view text);

// For people: "0.4 ms", "250 ms", "12.3 s", "4 m 10 s", "3 h 5 m", "2 d 4 h".
std::string FormatDuration(Nanoseconds duration);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SETTINGS_H_
