// ArraySource: named arrays that can be read box by box, wherever they lie: in a checkpoint of Cairn, in safetensors files, in a checkpoint of
// torch.distributed.checkpoint.
//
// Not thread-safe. Blocking I/O. Every box is checked at open: an array with a hole is refused there, so that nobody has written half of a
// copy when it is found.
#ifndef CAIRN_RUNTIME_INTEROP_ARRAY_SOURCE_H_
#define CAIRN_RUNTIME_INTEROP_ARRAY_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planner/base/box.h"
#include "planner/base/status.h"
#include "planner/layout.h"

namespace cairn {

class ArraySource {
 public:
  virtual ~ArraySource() = default;

  // As they are stored: row-major, with the dimensions of a Fortran program's array reversed.
  virtual const std::vector<ArraySpec>& arrays() const = 0;

  // What is there besides and is no array: one line each, for people.
  virtual std::vector<std::string> others() const { return {}; }

  // Reads a box that is not empty of arrays()[array], dense and row-major. `out` has just its size. kDamage when what is read is not what was
  // written, as far as the format can tell.
  virtual Status Read(uint32_t array, const Box& box, std::span<std::byte> out) = 0;
};

uint64_t ArrayBytes(const ArraySpec& array);

// What one Read of a streaming copy takes at most (or one element).
inline constexpr uint64_t kSlabBytes = 64 << 20;

// Cuts an array into boxes of at most `max_bytes` (or of one element) whose bytes, in this order, are the array's from the first to the last.
std::vector<Box> Slabs(const Dims& shape, int64_t element_bytes, uint64_t max_bytes = kSlabBytes);

// Hands a box of the array on, slab by slab in the order of its bytes; `offset` is the position of `bytes` in the box. The first error ends it.
using Sink = std::function<Status(const Box& slab, std::span<const std::byte> bytes, uint64_t offset)>;
Status Stream(ArraySource& source, uint32_t array, const Box& box, const Sink& sink);

// Told between slabs: bytes done and in all.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_ARRAY_SOURCE_H_
