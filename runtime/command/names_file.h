// ReadNames: the file of `--names` (interop/name_map.h). Blocking I/O.
#ifndef CAIRN_RUNTIME_COMMAND_NAMES_FILE_H_
#define CAIRN_RUNTIME_COMMAND_NAMES_FILE_H_

#include <string>

#include "planner/base/status.h"
#include "runtime/interop/name_map.h"

namespace cairn {

// "" = all keep their names.
Result<NameMap> ReadNames(const std::string& path);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_NAMES_FILE_H_
