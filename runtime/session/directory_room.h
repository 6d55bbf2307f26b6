// DirectoryRoom: what the file system of a run's directory still takes from this user, compared with what saves need, so that it is said before the
// first one fails.
#ifndef CAIRN_RUNTIME_SESSION_DIRECTORY_ROOM_H_
#define CAIRN_RUNTIME_SESSION_DIRECTORY_ROOM_H_

#include <cstdint>
#include <optional>
#include <string>

namespace cairn {

// Nothing = no limit, or none that can be read here (quotas of network file systems).
struct DirectoryRoom {
  std::optional<uint64_t> bytes, files;  // free in the file system, for other users than root
  std::optional<uint64_t> quota_bytes,
      quota_files;  // left of the user's quota, or the group's if that is less
};

// Blocking I/O. What cannot be read is left out.
DirectoryRoom ReadDirectoryRoom(const std::string& path);

struct SaveNeeds {
  uint64_t bytes = 0, files = 0;  // of one save
  uint64_t saves = 1;             // that will be written before an older one is pruned
};

// Pure. One line: which save will fail, for want of what, and what to do. "" = none.
std::string WhatIsMissing(const DirectoryRoom& room, const SaveNeeds& needs);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_DIRECTORY_ROOM_H_
