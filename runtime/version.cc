#include "runtime/version.h"

namespace cairn {

const char kVersion[] = CAIRN_VERSION;

}  // namespace cairn
