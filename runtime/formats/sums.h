// Sums: the checksums of one file's blocks, kept beside it. docs/design/formats.md, section 3.
#ifndef CAIRN_RUNTIME_FORMATS_SUMS_H_
#define CAIRN_RUNTIME_FORMATS_SUMS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/hash.h"

namespace cairn {

// The unit of checksum and of read ownership. Blocks are counted from the start of the file; the last may be
// short.
inline constexpr uint64_t kBlockBytes = 4 << 20;

inline constexpr uint64_t BlockCount(uint64_t file_bytes) {
  return file_bytes / kBlockBytes + (file_bytes % kBlockBytes != 0);
}
// Bytes of block `block` of a file; block < BlockCount(file_bytes).
inline constexpr uint64_t BlockBytes(uint64_t file_bytes, uint64_t block) {
  const uint64_t left = file_bytes - block * kBlockBytes;
  return left < kBlockBytes ? left : kBlockBytes;
}

struct Sums {
  uint64_t file_bytes = 0;
  std::vector<Hash128> blocks;  // BlockCount(file_bytes) hashes

  // The hash of the block hashes: what the index holds of this file.
  Hash128 Root() const;

  friend bool operator==(const Sums&, const Sums&) = default;
};

// The size of the encoded form, which depends on the file's size alone.
uint64_t EncodedSumsBytes(uint64_t file_bytes);

std::string EncodeSums(const Sums& sums);

// kDamage with what is wrong and at which offset.
Result<Sums> DecodeSums(std::string_view bytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_SUMS_H_
