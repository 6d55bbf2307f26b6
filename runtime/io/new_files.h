// New files of a folder that count together: made exclusively, removed again unless all of them come to be.
#ifndef CAIRN_RUNTIME_IO_NEW_FILES_H_
#define CAIRN_RUNTIME_IO_NEW_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/fd.h"
#include "runtime/io/file.h"

namespace cairn {

// Removes on destruction what was created or added, unless it was told to keep it; best effort. One thread.
class NewFiles {
 public:
  explicit NewFiles(FileMode mode) : mode_(mode) {}
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // For writing; kExists when it is there.
  Result<UniqueFd> Create(const std::string& path);
  // The same, with content. Neither it nor its name is durable yet.
  Result<UniqueFd> Write(const std::string& path, std::string_view bytes);
  void Add(const std::string& path) { paths_.push_back(path); }
  void Keep() { paths_.clear(); }

 private:
  FileMode mode_;
  std::vector<std::string> paths_;
};

// Turns O_DIRECT on or off; false where the file system refuses it. After creation, since open(2) with the flag leaves the new file behind
// where it is refused.
bool SetDirect(int fd, bool on);

// Reserves the file's bytes, which saves extents and tells early that the space is not there. OK also where the file system cannot: then the
// writes will tell.
Status Preallocate(int fd, uint64_t bytes, const std::string& path);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_NEW_FILES_H_
