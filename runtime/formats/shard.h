// The header of one file of arrays: plain safetensors, with what PyTorch's sharded reader wants.
// docs/design/formats.md, section 2.
#ifndef CAIRN_RUNTIME_FORMATS_SHARD_H_
#define CAIRN_RUNTIME_FORMATS_SHARD_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/box.h"
#include "planner/base/dtype.h"
#include "planner/base/status.h"

namespace cairn {

// The data begin at a multiple of this, so that an image can be written with O_DIRECT.
inline constexpr uint64_t kShardAlignment = 4096;

struct ShardTensor {
  std::string fqn;
  DType dtype = DType::kF32;
  Box box;  // global coordinates; its extent is the shape that safetensors shows

  friend bool operator==(const ShardTensor&, const ShardTensor&) = default;
};

// Where everything of one file lies. offsets[i] and bytes[i] belong to the i-th tensor given to LayOutShard.
struct ShardLayout {
  std::string header;             // the file's first bytes, up to the data
  std::vector<uint64_t> offsets;  // from the start of the file
  std::vector<uint64_t> bytes;
  uint64_t file_bytes = 0;
};

// Lays the tensors out without holes. Wider element types come first (within a width, in the given order), so
// that every tensor is aligned to its element. The result depends on nothing but the tensors: whoever knows
// them knows the offsets. kInvalid for a name that occurs twice, is empty, is "__metadata__" or is no UTF-8,
// for an empty box, and for sizes beyond what the format holds.
Result<ShardLayout> LayOutShard(std::span<const ShardTensor> tensors);

// The same for whole tensors that leave Cairn: without sharding information, and a tensor may be empty.
Result<ShardLayout> LayOutWhole(std::span<const ShardTensor> tensors);

struct ParsedShard {
  struct Entry {
    ShardTensor tensor;   // box.offset is 0 where the file has no sharding information
    uint64_t offset = 0;  // from the start of the file
    uint64_t bytes = 0;
  };
  std::vector<Entry> entries;  // by offset
};

// How many bytes from the start of the file ParseShard wants, told from its first 8; kDamage when the file
// cannot hold them.
Result<uint64_t> ShardHeaderBytes(std::string_view first_8_bytes, uint64_t file_bytes);

// Reads the header (also of safetensors files that others wrote). kDamage, with what is wrong, when it is
// malformed, or the tensors overlap, leave holes or do not fill the file exactly.
Result<ParsedShard> ParseShard(std::string_view header, uint64_t file_bytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_SHARD_H_
