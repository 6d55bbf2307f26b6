// Import: makes a checkpoint of Cairn from the arrays of any source. Streamed: memory is one slab, whatever the size. Blocking I/O.
#ifndef CAIRN_RUNTIME_INTEROP_IMPORT_H_
#define CAIRN_RUNTIME_INTEROP_IMPORT_H_

#include <cstdint>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/formats/index.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/name_map.h"
#include "runtime/interop/share_file.h"
#include "runtime/interop/stored_source.h"

namespace cairn {

// No file of an import is longer than about this: many ranks can then read it at once.
inline constexpr uint64_t kImportFileBytes = uint64_t{4} << 30;

// Writes the arrays into shards and sums in `folder`, as an attempt wants them. Arrays of more than `file_bytes` are cut. The index says that one
// rank wrote all.
Result<Index> ImportArrays(ArraySource& source, std::span<const NamedArray> arrays, const std::string& folder,
                           const Progress& progress, uint64_t file_bytes = kImportFileBytes);

// Makes the files of a safetensors source themselves the shards, by ShareFile, and writes sums of what they hold now; arrays keep their names. `sharing`
// is the worst of all. By a hard link they stay the files of whoever wrote them: what he writes into them later is damage here.
Result<Index> LinkArrays(const StoredSource& source, const std::string& folder, const Progress& progress,
                         Sharing* sharing);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_IMPORT_H_
