// TakePluginOptions: the options of srun that Cairn's plugin would take, for where there is no plugin. So one command line serves both. Pure.
#ifndef CAIRN_RUNTIME_SUPERVISOR_PLUGIN_OPTIONS_H_
#define CAIRN_RUNTIME_SUPERVISOR_PLUGIN_OPTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

struct PluginOptions {
  std::vector<std::string> command;           // without them
  std::map<std::string, std::string> values;  // what they mean, by the setting's variable
};

// kInvalid for an option that the plugin does not know, or that lacks its value. Values are checked by the host process.
Result<PluginOptions> TakePluginOptions(const std::vector<std::string>& command);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_PLUGIN_OPTIONS_H_
