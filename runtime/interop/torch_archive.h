// TorchArchive: writes one tensor as torch.save does, into a file that holds more of them. Streamed; blocking I/O; one thread.
#ifndef CAIRN_RUNTIME_INTEROP_TORCH_ARCHIVE_H_
#define CAIRN_RUNTIME_INTEROP_TORCH_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "planner/base/box.h"
#include "planner/base/dtype.h"
#include "planner/base/status.h"

namespace cairn {

// The archive has no 64-bit sizes: a tensor has at most this many bytes.
inline constexpr uint64_t kMaxArchivedBytes = 1 << 30;

class TorchArchive {
 public:
  // A dense tensor, in an archive that begins at `begin` of the file. Begin writes what comes before the tensor's bytes; then Append all of
  // them in order; Finish writes the rest and returns where the archive ends.
  TorchArchive(int fd, std::string path, uint64_t begin, DType dtype, const Dims& shape);
  Status Begin();
  Status Append(std::span<const std::byte> bytes);
  Result<uint64_t> Finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0;
    uint32_t bytes = 0;
    uint32_t header = 0;  // from the archive's start
  };
  static std::string Header(const Member& member);

  const int fd_;
  const std::string path_;
  const uint64_t begin_;
  const std::string pickle_;
  std::string members_;    // headers and bytes of the small members, and the tensor's header
  std::string directory_;  // their entries
  Member tensor_;
  uint64_t at_;  // in the file
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_TORCH_ARCHIVE_H_
