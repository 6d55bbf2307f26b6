// The version of this build.
#ifndef CAIRN_RUNTIME_VERSION_H_
#define CAIRN_RUNTIME_VERSION_H_

namespace cairn {

extern const char kVersion[];  // "0.1.0"

}  // namespace cairn

#endif  // CAIRN_RUNTIME_VERSION_H_
