// Blobs: the small opaque items of one checkpoint, bytes per rank, with what becomes of them when the number
// of ranks changes. docs/design/formats.md, section 5.
#ifndef CAIRN_RUNTIME_FORMATS_BLOBS_H_
#define CAIRN_RUNTIME_FORMATS_BLOBS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// The values are those of CAIRN_BLOB_* in cairn.h; on disk stand the names "refuse", "reseed", "drop", "merge".
enum class BlobPolicy : uint8_t { kRefuse = 0, kReseed = 1, kDrop = 2, kMerge = 3 };
std::string_view BlobPolicyName(BlobPolicy policy);

struct BlobItem {
  std::string name;
  BlobPolicy policy = BlobPolicy::kRefuse;
  std::vector<std::optional<std::string>> by_rank;  // nothing = that rank did not register the item

  friend bool operator==(const BlobItem&, const BlobItem&) = default;
};

struct Blobs {
  std::vector<BlobItem> items;  // names unique, not empty; by_rank of the same length in all

  friend bool operator==(const Blobs&, const Blobs&) = default;
};

// kInvalid for a name that is empty, occurs twice or is no UTF-8.
Result<std::string> EncodeBlobs(const Blobs& blobs);

// kDamage with what is wrong.
Result<Blobs> DecodeBlobs(std::string_view bytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_BLOBS_H_
