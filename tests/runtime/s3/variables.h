// An environment that a test makes up, and the files that it names.
#ifndef CAIRN_TESTS_RUNTIME_S3_VARIABLES_H_
#define CAIRN_TESTS_RUNTIME_S3_VARIABLES_H_

#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "runtime/s3/config.h"

namespace cairn {

using Variables = std::map<std::string, std::string>;

inline Environment Of(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return at->second;
  };
}

inline void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_S3_VARIABLES_H_
