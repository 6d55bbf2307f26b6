// Whether a text may stand in JSON.
#ifndef CAIRN_RUNTIME_FORMATS_UTF8_H_
#define CAIRN_RUNTIME_FORMATS_UTF8_H_

#include <string>

namespace cairn {

bool IsUtf8(const std::string& text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_UTF8_H_
