// Which file system lies under a path, as /proc/<pid>/mountinfo tells it.
#ifndef CAIRN_RUNTIME_STAGING_MOUNT_TABLE_H_
#define CAIRN_RUNTIME_STAGING_MOUNT_TABLE_H_

#include <optional>
#include <string>
#include <string_view>

namespace cairn {

// "major:minor" of the mount that covers the absolute `path` in this text of a mountinfo file; nothing when none does.
std::optional<std::string> MountDevice(std::string_view mountinfo, std::string_view path);

// Whether the node's own processes (pid 1) see another file system at `path` than we do: then it was made for this job, and goes with it.
// False where that cannot be told. The mount tables are looked for below `root`; "" = the machine's own.
bool IsPrivateMount(const std::string& path, const std::string& root = "");

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_MOUNT_TABLE_H_
