// Safetensors files of others, and for others: written with whole arrays, read also where they hold the shards of one state.
#ifndef CAIRN_RUNTIME_INTEROP_SAFETENSORS_FILE_H_
#define CAIRN_RUNTIME_INTEROP_SAFETENSORS_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/name_map.h"

namespace cairn {

// Makes the file, which must not be there, and fsyncs it (not its name). Returns its size. `wrote` is told of each slab's bytes.
Result<uint64_t> WriteSafetensors(ArraySource& source, std::span<const NamedArray> arrays,
                                  const std::string& path, const std::function<void(uint64_t bytes)>& wrote);

// Opens one file, or all *.safetensors of a folder as one state: whole arrays, or shards with PyTorch's sharding information. kDamage, naming the
// file, for a file that is malformed, and for shards that do not fit or leave a hole. kNotFound where there is no such file.
Result<std::unique_ptr<ArraySource>> OpenSafetensors(const std::string& path);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_SAFETENSORS_FILE_H_
