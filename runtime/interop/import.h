// Import: makes a checkpoint of Cairn from the arrays of any source. Streamed: memory is one slab, whatever the size.
#ifndef CAIRN_RUNTIME_INTEROP_IMPORT_H_
#define CAIRN_RUNTIME_INTEROP_IMPORT_H_

#include <cstdint>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/formats/index.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/name_map.h"

namespace cairn {

// No file of an import is longer than about this: many ranks can then read it at once.
inline constexpr uint64_t kImportFileBytes = uint64_t{4} << 30;

// Writes the arrays into shards and sums in `folder`, as an attempt wants them. Arrays of more than `file_bytes` are cut. The index says that one
// rank wrote all.
Result<Index> ImportArrays(ArraySource& source, std::span<const NamedArray> arrays, const std::string& folder,
                           const Progress& progress, uint64_t file_bytes = kImportFileBytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_IMPORT_H_
