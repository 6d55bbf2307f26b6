#include "runtime/command/names_file.h"

#include "runtime/io/file.h"

namespace cairn {

Result<NameMap> ReadNames(const std::string& path) {
  if (path.empty()) return NameMap();
  constexpr uint64_t kMaxBytes = 64 << 20;
  CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, kMaxBytes));
  Result<NameMap> names = NameMap::Parse(text);
  if (!names.ok()) return names.status().Annotate(path);
  return names;
}

}  // namespace cairn
