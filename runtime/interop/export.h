// Export: writes arrays in the formats that others read. Streamed: memory is one slab (array_source.h), whatever the size. Every byte that is
// written has been checked as its source can.
//
// A safetensors file or folder of them has no sharding information: whole arrays, as the safetensors library, transformers and PyTorch's
// HuggingFaceStorageReader open them.
#ifndef CAIRN_RUNTIME_INTEROP_EXPORT_H_
#define CAIRN_RUNTIME_INTEROP_EXPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/name_map.h"

namespace cairn {

struct Exported {
  std::string path;                // absolute
  std::vector<std::string> files;  // within `path` where that is a folder
  uint64_t bytes = 0;              // of all files
};

// One file.
Result<Exported> ExportSafetensors(ArraySource& source, std::span<const NamedArray> arrays,
                                   const std::string& path, const Progress& progress);

// A folder as transformers and the Hub have it: model-00001-of-0000N.safetensors, each with arrays of at most `file_limit` bytes or with one array,
// and model.safetensors.index.json; one model.safetensors where all fit.
Result<Exported> ExportHuggingFace(ArraySource& source, std::span<const NamedArray> arrays,
                                   const std::string& path, uint64_t file_limit, const Progress& progress);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_EXPORT_H_
