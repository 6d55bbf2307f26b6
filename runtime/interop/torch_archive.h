// TorchArchive: writes one tensor as torch.save does, into a file that holds more of them. Streamed; blocking I/O; one thread.
// ArchiveOfObject: the same of an object without tensors, in memory.
#ifndef CAIRN_RUNTIME_INTEROP_TORCH_ARCHIVE_H_
#define CAIRN_RUNTIME_INTEROP_TORCH_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planner/base/box.h"
#include "planner/base/dtype.h"
#include "planner/base/status.h"

namespace cairn {

// The archive has no 64-bit sizes: a tensor, or a pickle, has at most this many bytes.
inline constexpr uint64_t kMaxArchivedBytes = 1 << 30;

// Members of a zip archive, stored as they are (the parts of one are described in zip.cc).
struct ZipMembers {
  struct Member {
    std::string name;
    uint32_t crc = 0;
    uint32_t bytes = 0;
    uint32_t header = 0;  // from the archive's start
  };
  std::string bytes;      // their headers and bytes
  std::string directory;  // their entries
  uint16_t count = 0;

  void Add(const std::string& name, std::string_view content);
  void AddEntry(const Member& member);
  static std::string Header(const Member& member);
  // What an archive ends with whose members take so many bytes.
  std::string End(uint64_t members_bytes) const;
};

std::string ArchiveOfObject(std::string_view pickle);

class TorchArchive {
 public:
  // A dense tensor, in an archive that begins at `begin` of the file. Begin writes what comes before the tensor's bytes; then Append all of
  // them in order; Finish writes the rest and returns where the archive ends.
  TorchArchive(int fd, std::string path, uint64_t begin, DType dtype, const Dims& shape);
  Status Begin();
  Status Append(std::span<const std::byte> bytes);
  Result<uint64_t> Finish();

 private:
  const int fd_;
  const std::string path_;
  const uint64_t begin_;
  const std::string pickle_;
  ZipMembers members_;  // but for the tensor's bytes
  ZipMembers::Member tensor_;
  uint64_t at_;  // in the file
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_TORCH_ARCHIVE_H_
