#include "runtime/host/resolve.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "runtime/settings_value.h"

namespace cairn {
namespace {

std::string SiteVariable(std::string_view key) {
  std::string name = "CAIRN_SITE_";
  for (const char c : key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// A variable that is set to nothing says nothing.
std::optional<std::string> NotEmpty(std::optional<std::string> value) {
  if (value && value->empty()) value.reset();
  return value;
}

template <typename T>
std::optional<T> Number(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

Status ResolvePorts(const std::optional<std::string>& text, ResolvedSettings* out) {
  if (!text) return OkStatus();
  const size_t dash = text->find('-');
  const auto first = Number<uint16_t>(text->substr(0, dash));
  const auto last = dash == std::string::npos ? first : Number<uint16_t>(text->substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last) {
    return Status(Code::kInvalid, "plugstack.conf: ports=" + *text + ": a range like 40000-40100 is needed");
  }
  out->first_port = *first;
  out->last_port = *last;
  return OkStatus();
}

struct SiteLimit {
  const char* key;
  SettingId setting;
};
constexpr SiteLimit kSiteLimits[] = {{"max_lives_limit", kSetting_max_lives},
                                     {"max_drain", kSetting_drain_limit},
                                     {"max_local", kSetting_local_limit}};

// What a value of a setting with a limit comes to. "none" is more than any.
Result<int64_t> Amount(SettingId id, const std::string& name, const std::string& text) {
  char error[512];
  cairn_value value;
  if (cairn_value_parse(static_cast<cairn_setting_id>(id), name.c_str(), text.c_str(), &value, error,
                        sizeof error) != 0)
    return Status(Code::kInvalid, error);
  return value.kind == CAIRN_VALUE_NONE ? INT64_MAX : value.number;
}

}  // namespace

Result<ResolvedSettings> ResolveSettings(const GetVariable& get) {
  ResolvedSettings out;
  std::array<std::string, kSettingCount> given_as;  // how the user has named it; "" = the user has not
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    std::string& name = given_as[static_cast<size_t>(i)];
    std::optional<std::string> value = get("CAIRN_PLUGIN_" + std::string(info.env));
    if (value) name = "--" + std::string(info.option);
    if (!value && (value = NotEmpty(get(std::string(info.env))))) name = info.env;
    if (!value && !info.key.empty()) value = NotEmpty(get(SiteVariable(info.key)));
    out.text[static_cast<size_t>(i)] = value.value_or(std::string(info.fallback));
    if (out.text[static_cast<size_t>(i)].find('\n') != std::string::npos) {
      return Status(Code::kInvalid, std::string(info.env) + ": a line break is not allowed");
    }
  }
  for (const SiteLimit& limit : kSiteLimits) {
    const auto most = NotEmpty(get(SiteVariable(limit.key)));
    if (!most) continue;
    std::string& text = out.text[limit.setting];
    const std::string& name = given_as[limit.setting];
    CAIRN_ASSIGN_OR_RETURN(const int64_t bound,
                           Amount(limit.setting, std::string("plugstack.conf: ") + limit.key, *most));
    CAIRN_ASSIGN_OR_RETURN(
        const int64_t wanted,
        Amount(limit.setting, name.empty() ? std::string(GetSettingInfo(limit.setting).env) : name, text));
    if (wanted <= bound) continue;
    if (!name.empty())
      out.notes.push_back(name + "=" + text + " is more than this site allows: " + *most + " holds (" +
                          limit.key + " in plugstack.conf)");
    text = *most;
  }
  const auto lookup = [&](const std::string& name) -> std::optional<std::string> {
    for (int i = 0; i < kSettingCount; ++i) {
      const std::string& text = out.text[static_cast<size_t>(i)];
      if (name == GetSettingInfo(static_cast<SettingId>(i)).env && !text.empty()) return text;
    }
    return std::nullopt;
  };
  CAIRN_ASSIGN_OR_RETURN(out.settings, ParseSettings(lookup));

  out.allowed_dirs = get(SiteVariable("dirs")).value_or("");
  out.interface = get(SiteVariable("interface")).value_or("");
  CAIRN_RETURN_IF_ERROR(ResolvePorts(get(SiteVariable("ports")), &out));
  return out;
}

StepIdentity ResolveStep(const GetVariable& get) {
  StepIdentity step;
  step.job = Number<uint32_t>(get("CAIRN_HOST_JOB")).value_or(0);
  step.step = Number<uint32_t>(get("CAIRN_HOST_STEP")).value_or(0);
  step.restart = Number<int>(get("CAIRN_HOST_RESTART")).value_or(0);
  step.array_job = Number<uint32_t>(get("SLURM_ARRAY_JOB_ID"));
  step.array_task = Number<uint32_t>(get("SLURM_ARRAY_TASK_ID"));
  step.job_name = get("SLURM_JOB_NAME").value_or("job");
  step.user = get("SLURM_JOB_USER").value_or(get("USER").value_or("user"));
  std::replace(step.job_name.begin(), step.job_name.end(), '/', '_');
  return step;
}

}  // namespace cairn
