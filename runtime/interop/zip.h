// ZipSlice: a zip archive that lies somewhere in a file, as torch.save writes it: every member stored as it is, no comment at the end.
// Blocking I/O.
#ifndef CAIRN_RUNTIME_INTEROP_ZIP_H_
#define CAIRN_RUNTIME_INTEROP_ZIP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

struct ZipMember {
  std::string name;
  uint64_t bytes = 0;
  uint64_t header = 0;  // where its local header lies, from the start of the archive
};

class ZipSlice {
 public:
  // Reads the directory of the archive in bytes [begin, begin + size) of the file. kDamage, with `path` and the offset, when it is none, or
  // members are compressed or lie outside.
  static Result<ZipSlice> Open(int fd, std::string path, uint64_t begin, uint64_t size);

  const std::vector<ZipMember>& members() const { return members_; }

  // The member whose name ends in "/" + `name` (torch puts all of them into one folder); kDamage when there is none.
  Result<ZipMember> Find(std::string_view name) const;

  // Where the member's bytes begin in the file.
  Result<uint64_t> DataOffset(const ZipMember& member) const;

  // The bytes of a small member; kDamage when it has more than max_bytes.
  Result<std::string> Read(const ZipMember& member, uint64_t max_bytes) const;

 private:
  ZipSlice(int fd, std::string path, uint64_t begin, uint64_t size)
      : fd_(fd), path_(std::move(path)), begin_(begin), size_(size) {}
  Status Fault(std::string_view what) const;
  Result<std::string> Bytes(uint64_t at, uint64_t size) const;  // of the archive
  Status ReadDirectory();

  int fd_;
  std::string path_;
  uint64_t begin_, size_;
  std::vector<ZipMember> members_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_ZIP_H_
