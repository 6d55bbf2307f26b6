#include "runtime/settings.h"

#include <cmath>
#include <cstdio>
#include <iterator>
#include <sstream>

#include "runtime/settings_value.h"

namespace cairn {
namespace {

constexpr SettingInfo kInfos[] = {
#define CAIRN_SETTING(id, option, env, key, type, argument, fallback, help) \
  {#id, option, env, key, argument, fallback, help},
#include "runtime/settings.def"
#undef CAIRN_SETTING
};
static_assert(std::size(kInfos) == kSettingCount);
static_assert(static_cast<int>(KeepRule::kLast) == CAIRN_KEEP_LAST &&
              static_cast<int>(KeepRule::kEveryTime) == CAIRN_KEEP_EVERY_TIME &&
              static_cast<int>(KeepRule::kEverySteps) == CAIRN_KEEP_EVERY_STEPS &&
              static_cast<int>(KeepRule::kBest) == CAIRN_KEEP_BEST);

Result<cairn_value> ParseValue(SettingId id, const std::string& name, std::string_view value) {
  char error[512];
  cairn_value out;
  std::string text(value == "(null)" ? "" : value);
  if (cairn_value_parse(static_cast<cairn_setting_id>(id), name.c_str(), text.c_str(), &out, error,
                        sizeof error) != 0) {
    return Status(Code::kInvalid, error);
  }
  return out;
}

// One setting's text and what it says. A fallback may be empty where it means "as the runtime sees fit": then
// kind is AUTO.
struct Resolved {
  std::string text;
  cairn_value value;
};

Result<Resolved> Resolve(SettingId id,
                         const std::function<std::optional<std::string>(const std::string&)>& get) {
  const SettingInfo& info = kInfos[id];
  for (const char* prefix : {"SLURM_", ""}) {
    std::string name = prefix + std::string(info.env);
    std::optional<std::string> text = get(name);
    if (!text || text->empty()) continue;
    CAIRN_ASSIGN_OR_RETURN(cairn_value value, ParseValue(id, name, *text));
    return Resolved{*std::move(text), value};
  }
  std::string text(info.fallback);
  if (text.empty()) return Resolved{"", {CAIRN_VALUE_AUTO, 0}};
  CAIRN_ASSIGN_OR_RETURN(cairn_value value, ParseValue(id, std::string(info.env), text));
  return Resolved{std::move(text), value};
}

std::optional<Nanoseconds> Time(const cairn_value& value) {
  if (value.kind != CAIRN_VALUE_TIME) return std::nullopt;
  return Nanoseconds(value.number);
}

Resume ToResume(const cairn_value& value) {
  switch (value.kind) {
    case CAIRN_VALUE_NEVER:
      return Resume::kNever;
    case CAIRN_VALUE_REQUIRE:
      return Resume::kRequire;
    case CAIRN_VALUE_NUMBER:
      return Resume::kStep;
    default:
      return Resume::kAuto;
  }
}

After ToAfter(const cairn_value& value) {
  switch (value.kind) {
    case CAIRN_VALUE_REQUEUE:
      return After::kRequeue;
    case CAIRN_VALUE_WAIT:
      return After::kWait;
    case CAIRN_VALUE_EXIT:
      return After::kExit;
    default:
      return After::kAuto;
  }
}

std::vector<int64_t> ToSteps(const Resolved& steps) {
  std::vector<int64_t> out;
  if (steps.value.kind == CAIRN_VALUE_NONE) return out;
  std::istringstream text(steps.text.c_str());  // as it was checked: a setting ends at its first NUL
  for (std::string step; std::getline(text, step, ',');) out.push_back(std::stoll(step));
  return out;
}

ExchangeBy ToExchange(const cairn_value& value) {
  switch (value.kind) {
    case CAIRN_VALUE_TCP:
      return ExchangeBy::kTcp;
    case CAIRN_VALUE_MPI:
      return ExchangeBy::kMpi;
    default:
      return ExchangeBy::kAuto;
  }
}

Writer ToWriter(const cairn_value& value) {
  switch (value.kind) {
    case CAIRN_VALUE_IO_URING:
      return Writer::kIoUring;
    case CAIRN_VALUE_PWRITE:
      return Writer::kPwrite;
    default:
      return Writer::kAuto;
  }
}

S3Style ToS3Style(const cairn_value& value) {
  switch (value.kind) {
    case CAIRN_VALUE_PATH_STYLE:
      return S3Style::kPath;
    case CAIRN_VALUE_VIRTUAL_STYLE:
      return S3Style::kVirtual;
    default:
      return S3Style::kAuto;
  }
}

}  // namespace

const SettingInfo& GetSettingInfo(SettingId id) { return kInfos[id]; }

Status CheckSetting(SettingId id, std::string_view value) {
  const SettingInfo& info = kInfos[id];
  std::string name = info.option.empty() ? std::string(info.env) : "--" + std::string(info.option);
  return ParseValue(id, name, value).status();
}

Result<KeepRules> ParseKeep(const std::string& name, std::string_view value) {
  CAIRN_RETURN_IF_ERROR(ParseValue(kSetting_keep, name, value).status());
  const std::string text(value);
  KeepRules rules;
  for (const char* rest = text.c_str(); *rest != '\0';) {
    cairn_keep_rule rule;
    if (cairn_keep_next(&rest, &rule) != 0) return Status(Code::kInternal, name + "=" + text);
    rules.push_back({static_cast<KeepRule::Kind>(rule.kind), rule.number,
                     std::string(rule.metric == nullptr ? "" : rule.metric, rule.metric_length),
                     rule.highest != 0});
  }
  return rules;
}

Result<CopyRule> ParseCopy(const std::string& name, std::string_view value) {
  CAIRN_ASSIGN_OR_RETURN(const cairn_value what, ParseValue(kSetting_copy, name, value));
  if (what.kind == CAIRN_VALUE_NONE) return CopyRule();
  const std::string text(value);
  size_t length;
  int64_t every_ns;
  if (cairn_copy_parse(text.c_str(), &length, &every_ns) != 0)
    return Status(Code::kInternal, name + "=" + text);
  return CopyRule{text.substr(0, length), Nanoseconds(every_ns)};
}

std::string DescribeKeep(const KeepRules& rules) {
  std::string out;
  for (const KeepRule& rule : rules) {
    out += out.empty() ? "" : ", ";
    switch (rule.kind) {
      case KeepRule::kLast:
        out += "the last " + std::to_string(rule.number);
        break;
      case KeepRule::kEveryTime:
        out += "one every " + FormatDuration(Nanoseconds(rule.number));
        break;
      case KeepRule::kEverySteps:
        out += "one every " + std::to_string(rule.number) + " steps";
        break;
      case KeepRule::kBest:
        out += "the best " + std::to_string(rule.number) + " by " + rule.metric +
               (rule.highest ? " (max)" : " (min)");
        break;
    }
  }
  return out;
}

std::string_view TriggerName(Trigger trigger) {
  for (int i = 0; const char* name = cairn_trigger_name(i); ++i) {
    if (trigger == 1u << i) return name;
  }
  return "all";
}

Result<Settings> ParseSettings(const std::function<std::optional<std::string>(const std::string&)>& get) {
  Resolved row[kSettingCount];
  for (int id = 0; id < kSettingCount; ++id) {
    CAIRN_ASSIGN_OR_RETURN(row[id], Resolve(static_cast<SettingId>(id), get));
  }
  Settings settings;
  for (int id = 0; id < kSettingCount; ++id) {
    if (row[id].text != kInfos[id].fallback) settings.given.emplace(kInfos[id].env, row[id].text);
  }
  auto value = [&row](SettingId id) -> const cairn_value& { return row[id].value; };

  const cairn_value& checkpoint = value(kSetting_checkpoint);
  settings.enabled = checkpoint.kind != CAIRN_VALUE_OFF;
  settings.interval_auto = checkpoint.kind == CAIRN_VALUE_AUTO;
  settings.interval = Time(checkpoint);
  if (checkpoint.kind == CAIRN_VALUE_STEPS) settings.interval_steps = checkpoint.number;
  settings.dir = row[kSetting_dir].text;
  settings.from = row[kSetting_from].text;
  settings.resume = ToResume(value(kSetting_resume));
  settings.resume_step = value(kSetting_resume).number;
  settings.files = static_cast<uint32_t>(value(kSetting_files).number);
  settings.partner = value(kSetting_partner).kind == CAIRN_VALUE_ON;
  if (value(kSetting_match).kind == CAIRN_VALUE_NUMBER)
    settings.match = static_cast<uint32_t>(value(kSetting_match).number);
  settings.require = value(kSetting_require).kind == CAIRN_VALUE_ON;
  settings.local = row[kSetting_local].text;
  settings.on = static_cast<uint32_t>(value(kSetting_on).number);
  CAIRN_ASSIGN_OR_RETURN(settings.keep,
                         ParseKeep(std::string(kInfos[kSetting_keep].env), row[kSetting_keep].text));
  CAIRN_ASSIGN_OR_RETURN(settings.copy,
                         ParseCopy(std::string(kInfos[kSetting_copy].env), row[kSetting_copy].text));
  CAIRN_ASSIGN_OR_RETURN(settings.copy_keep, ParseKeep(std::string(kInfos[kSetting_copy_keep].env),
                                                       row[kSetting_copy_keep].text));
  if (value(kSetting_mode).kind == CAIRN_VALUE_NUMBER)
    settings.mode = static_cast<uint32_t>(value(kSetting_mode).number);
  settings.notice = Time(value(kSetting_notice));
  settings.after = ToAfter(value(kSetting_after));
  settings.exit_code = static_cast<int>(value(kSetting_after).number);
  settings.max_lives = static_cast<int>(value(kSetting_max_lives).number);
  settings.strikes = static_cast<int>(value(kSetting_strikes).number);
  settings.mtbf = Nanoseconds(value(kSetting_mtbf).number);
  settings.copy_threads = static_cast<int>(value(kSetting_copy_threads).number);
  settings.signal = static_cast<int>(value(kSetting_signal).number);
  settings.boundary_wait = Nanoseconds(value(kSetting_boundary_wait).number);
  settings.save_timeout = Nanoseconds(value(kSetting_save_timeout).number);
  settings.open_within = Nanoseconds(value(kSetting_open_within).number);
  settings.exchange = ToExchange(value(kSetting_exchange));
  settings.writer = ToWriter(value(kSetting_writer));
  settings.local_limit = static_cast<uint64_t>(value(kSetting_local_limit).number);
  settings.drain_limit = static_cast<uint64_t>(value(kSetting_drain_limit).number);
  if (value(kSetting_s3_endpoint).kind == CAIRN_VALUE_TEXT)
    settings.s3_endpoint = row[kSetting_s3_endpoint].text;
  settings.s3_style = ToS3Style(value(kSetting_s3_style));
  settings.s3_connections = static_cast<int>(value(kSetting_s3_connections).number);
  settings.s3_stall = Nanoseconds(value(kSetting_s3_stall).number);
  settings.s3_deadline = Nanoseconds(value(kSetting_s3_deadline).number);
  settings.rehearsal = ToSteps(row[kSetting_rehearsal]);
  if (value(kSetting_rehearse).kind != CAIRN_VALUE_OFF)
    return Status(
        Code::kInvalid,
        "CAIRN_REHEARSE=" + row[kSetting_rehearse].text +
            " is for srun with Cairn's plugin, which makes a rehearsal of its step. Elsewhere begin the "
            "command with it: cairn rehearse -- COMMAND");
  settings.log = row[kSetting_log].text;
  return settings;
}

Result<Nanoseconds> ParseDuration(std::string_view text) {
  int64_t ns;
  if (cairn_duration_parse(std::string(text).c_str(), &ns) == 0) return Nanoseconds(ns);
  return Status(Code::kInvalid, "'" + std::string(text) +
                                    "' is no duration. Accepted: 10m, 90s, 1.5h, 500ms, 2d or [D-]HH:MM:SS");
}

std::string FormatDuration(Nanoseconds duration) {
  double ms = static_cast<double>(duration.count()) / 1e6;
  auto seconds = static_cast<long long>(std::llround(ms / 1e3));
  char text[64];
  if (std::abs(ms) < 9.95) {
    std::snprintf(text, sizeof text, "%.1f ms", ms);
  } else if (std::abs(ms) < 999.5) {
    std::snprintf(text, sizeof text, "%.0f ms", ms);
  } else if (std::abs(ms) < 59950) {
    std::snprintf(text, sizeof text, "%.1f s", ms / 1e3);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%lld m %lld s", seconds / 60, seconds % 60);
  } else if (seconds < 86400) {
    std::snprintf(text, sizeof text, "%lld h %lld m", seconds / 3600, seconds / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld d %lld h", seconds / 86400, seconds / 3600 % 24);
  }
  return text;
}

}  // namespace cairn
