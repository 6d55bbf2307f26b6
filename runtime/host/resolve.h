// Resolve: what a step's settings are, from the option, the environment and the site. Pure.
#ifndef CAIRN_RUNTIME_HOST_RESOLVE_H_
#define CAIRN_RUNTIME_HOST_RESOLVE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/host/directory.h"
#include "runtime/settings.h"

namespace cairn {

// The value of an environment variable; nothing when it is unset or empty.
using GetVariable = std::function<std::optional<std::string>(const std::string& name)>;

struct ResolvedSettings {
  std::array<std::string, kSettingCount> text;  // as they go to the tasks
  Settings settings;                            // the same, parsed
  std::vector<std::string> notes;               // for the user: what a limit of the site has lowered
  // The site's, from plugstack.conf.
  std::string allowed_dirs;                // "" = anywhere
  uint16_t first_port = 0, last_port = 0;  // 0 = any
  std::string interface;                   // "" = all
};

// Site limit > option (CAIRN_PLUGIN_<env>) > environment (<env>) > site default (CAIRN_SITE_<KEY>) > fallback. kInvalid: a value is refused.
Result<ResolvedSettings> ResolveSettings(const GetVariable& get);

// From CAIRN_HOST_* and Slurm's variables; zeros where there is no Slurm.
StepIdentity ResolveStep(const GetVariable& get);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_RESOLVE_H_
