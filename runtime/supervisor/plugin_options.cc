#include "runtime/supervisor/plugin_options.h"

#include <optional>
#include <string_view>

#include "runtime/settings.h"
#include "runtime/supervisor/shape.h"

namespace cairn {
namespace {

std::optional<SettingInfo> Find(std::string_view option) {
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    if (!info.option.empty() && info.option == option) return info;
  }
  return std::nullopt;
}

}  // namespace

Result<PluginOptions> TakePluginOptions(const std::vector<std::string>& command) {
  PluginOptions out;
  const size_t options_end = SrunOptionsEnd(command);
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (i >= options_end || !word.starts_with("--checkpoint")) {
      out.command.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const auto setting =
        Find(std::string_view(word).substr(2, equals == std::string::npos ? equals : equals - 2));
    if (!setting)
      return Status(Code::kInvalid, word + " is no option of Cairn's; `cairn settings` lists them");
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (setting->argument.empty()) {
      value = "yes";
    } else if (setting->argument.starts_with('[')) {
      value = "auto";
    } else if (i + 1 < command.size()) {
      value = command[++i];
    } else {
      return Status(Code::kInvalid, word + " needs a value");
    }
    out.environment.push_back("CAIRN_PLUGIN_" + std::string(setting->env) + "=" + value);
  }
  return out;
}

}  // namespace cairn
