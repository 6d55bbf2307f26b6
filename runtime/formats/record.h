// ShardRecord: what is known of one finished file of arrays. A member reports it when its drain is done; the
// index keeps it.
#ifndef CAIRN_RUNTIME_FORMATS_RECORD_H_
#define CAIRN_RUNTIME_FORMATS_RECORD_H_

#include <cstdint>

#include "runtime/io/hash.h"

namespace cairn {

struct ShardRecord {
  uint32_t number = 0;  // of the file's name, from 1
  uint64_t bytes = 0;   // of the file
  Hash128 sums_root;    // Sums::root of the file's blocks

  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_RECORD_H_
