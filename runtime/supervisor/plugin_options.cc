#include "runtime/supervisor/plugin_options.h"

#include <optional>
#include <string_view>

#include "runtime/settings.h"
#include "runtime/supervisor/srun_options.h"

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
  PluginOptions out{command, {}};  // of an option given twice the last one counts
  const std::vector<SrunOption> options = ReadSrunCommand(command).options;
  for (auto option = options.rbegin(); option != options.rend(); ++option) {
    if (!option->name.starts_with("--checkpoint")) continue;
    const auto setting = Find(std::string_view(option->name).substr(2));
    if (!setting) {
      return Status(Code::kInvalid,
                    command[option->word] + " is no option of Cairn's; `cairn settings` lists them");
    }
    const bool may_be_bare = setting->argument.empty() || setting->argument.starts_with('[');
    if (!option->value && !may_be_bare) return Status(Code::kInvalid, option->name + " needs a value");
    const std::string value = option->value.value_or(setting->argument.empty() ? "yes" : "auto");
    out.values.emplace(setting->env, value);
    const auto first = out.command.begin() + static_cast<std::ptrdiff_t>(option->word);
    out.command.erase(first, first + static_cast<std::ptrdiff_t>(option->words));
  }
  return out;
}

}  // namespace cairn
