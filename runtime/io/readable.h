// Readable: ranges of one file or object, by position.
//
// Any thread, also several at once; every call may block as long as the store likes.
#ifndef CAIRN_RUNTIME_IO_READABLE_H_
#define CAIRN_RUNTIME_IO_READABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/io/object_store.h"

namespace cairn {

class Readable {
 public:
  // kNotFound and the like; that an object is not there shows at its first use only.
  static Result<std::unique_ptr<Readable>> Open(const std::string& path);
  virtual ~Readable() = default;

  virtual Result<uint64_t> Bytes() const = 0;

  // It will be read from its begin to its end, more or less.
  virtual void ExpectInOrder() {}

  // Exactly to.size() bytes; kDamage when it ends before.
  virtual Status Read(uint64_t offset, std::span<std::byte> to) const = 0;
  // The same for several ranges: at the same time, where that is faster.
  virtual Status ReadRanges(std::span<const ObjectRange> ranges) const = 0;
  // As Read, past this node's page cache if the file system lets us. `room_bytes`: of the memory at `to`, aligned to pages, that may be
  // overwritten.
  virtual Status ReadAgain(uint64_t offset, std::span<std::byte> to, size_t room_bytes) const = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_READABLE_H_
