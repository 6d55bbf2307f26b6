// BoxFile: one file of a checkpoint whose boxes a program hands over one by one, and what the committer has to know of it.
#ifndef CAIRN_RUNTIME_INTEROP_BOX_FILE_H_
#define CAIRN_RUNTIME_INTEROP_BOX_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "planner/base/box.h"
#include "planner/base/status.h"
#include "planner/layout.h"
#include "runtime/formats/index.h"

namespace cairn {

struct ArrayBox {
  ArraySpec array;
  Box box;
};

// The bytes of a box by its position, valid until the next call; nullptr gives up. Memory is one box at a time.
using BoxBytes = std::function<const std::byte*(size_t box)>;

// Makes file `number` in the folder of an attempt, durably but for its name, of the boxes that are not empty; of none it makes no file. Returns
// the file's part of the checkpoint's index: its arrays, itself and its boxes. kInvalid for an array that occurs twice or cannot be.
// Blocking I/O, on one thread; `bytes` is called on it, in the order in which the boxes lie in the file.
Result<Index> WriteBoxFile(const std::string& folder, uint32_t number, std::span<const ArrayBox> boxes,
                           const BoxBytes& bytes);

// Puts the parts of all files together. kMismatch, naming the array, when two of them differ in its type or shape, or it has a hole.
Result<Index> MergeParts(std::span<const Index> parts, uint32_t world_size);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_BOX_FILE_H_
