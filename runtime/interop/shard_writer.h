// ShardWriter: one file of arrays and its checksums, written from the first byte to the last. One thread; blocking I/O.
#ifndef CAIRN_RUNTIME_INTEROP_SHARD_WRITER_H_
#define CAIRN_RUNTIME_INTEROP_SHARD_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/io/hash.h"

namespace cairn {

class ShardWriter {
 public:
  // Makes file `number` in the folder, which must not be there.
  static Result<ShardWriter> Create(const std::string& folder, uint32_t number);

  // Appends.
  Status Write(std::span<const std::byte> bytes);

  // Writes the sums beside it; both are durable then but for their names.
  Result<ShardRecord> Finish() &&;

 private:
  ShardWriter(std::string folder, uint32_t number, UniqueFd fd);
  std::string path() const;

  std::string folder_;
  uint32_t number_;
  UniqueFd fd_;
  Sums sums_;
  std::unique_ptr<Hasher128> block_;  // of the block that is not full yet
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_SHARD_WRITER_H_
