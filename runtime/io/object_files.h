// The functions of file.h, for paths of objects. Internal to runtime/io. As there, but for what objects have not (object_store.h).
#ifndef CAIRN_RUNTIME_IO_OBJECT_FILES_H_
#define CAIRN_RUNTIME_IO_OBJECT_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn::objects {

Result<uint64_t> FileBytes(const std::string& path);
Result<std::string> ReadAll(const std::string& path, uint64_t max_bytes);
Status PublishFile(const std::string& path, std::string_view bytes);
Status CreateExclusive(const std::string& path, std::string_view bytes);
Result<std::vector<std::string>> ListDirectory(const std::string& path);
Result<std::map<std::string, uint64_t>> FileSizes(const std::string& folder);
Status RemoveFile(const std::string& path);
Status RemoveTree(const std::string& path);
Status RemoveUnfinished(const std::string& folder);

}  // namespace cairn::objects

#endif  // CAIRN_RUNTIME_IO_OBJECT_FILES_H_
