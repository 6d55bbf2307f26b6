#include "runtime/host/resolve.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

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

}  // namespace

Result<ResolvedSettings> ResolveSettings(const GetVariable& get) {
  ResolvedSettings out;
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    std::optional<std::string> value = get("CAIRN_PLUGIN_" + std::string(info.env));
    if (!value) value = NotEmpty(get(std::string(info.env)));
    if (!value && !info.key.empty()) value = NotEmpty(get(SiteVariable(info.key)));
    out.text[static_cast<size_t>(i)] = value.value_or(std::string(info.fallback));
    if (out.text[static_cast<size_t>(i)].find('\n') != std::string::npos) {
      return Status(Code::kInvalid, std::string(info.env) + ": a line break is not allowed");
    }
  }
  const auto lookup = [&](const std::string& name) -> std::optional<std::string> {
    for (int i = 0; i < kSettingCount; ++i) {
      const std::string& text = out.text[static_cast<size_t>(i)];
      if (name == GetSettingInfo(static_cast<SettingId>(i)).env && !text.empty()) return text;
    }
    return std::nullopt;
  };
  CAIRN_ASSIGN_OR_RETURN(out.settings, ParseSettings(lookup));

  if (const auto limit = Number<int>(get(SiteVariable("max_lives_limit")))) {
    out.settings.max_lives = std::min(out.settings.max_lives, *limit);
    out.text[kSetting_max_lives] = std::to_string(out.settings.max_lives);
  }
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
