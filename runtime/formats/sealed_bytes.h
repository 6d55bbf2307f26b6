// Sealed bytes: a binary content of one piece behind a magic, a version and its checksum. docs/design/staging.md, section 5.
#ifndef CAIRN_RUNTIME_FORMATS_SEALED_BYTES_H_
#define CAIRN_RUNTIME_FORMATS_SEALED_BYTES_H_

#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

// `magic`: 8 bytes.
std::string SealBytes(std::string_view magic, std::string_view content);

// The content; kDamage, beginning with `what`, when the magic, the version or the checksum is wrong.
Result<std::string> UnsealBytes(std::string_view magic, std::string_view bytes, std::string_view what);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_SEALED_BYTES_H_
