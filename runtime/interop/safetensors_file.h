// Safetensors files of others, and for others: written with whole arrays, read also where they hold the shards of one state.
#ifndef CAIRN_RUNTIME_INTEROP_SAFETENSORS_FILE_H_
#define CAIRN_RUNTIME_INTEROP_SAFETENSORS_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/name_map.h"
#include "runtime/interop/stored_source.h"

namespace cairn {

// Makes the file, which must not be there, and fsyncs it (not its name). Returns its size. `wrote` is told of each slab's bytes.
Result<uint64_t> WriteSafetensors(ArraySource& source, std::span<const NamedArray> arrays,
                                  const std::string& path, const std::function<void(uint64_t bytes)>& wrote);

// What Hugging Face's libraries write beside a state of several files: which tensor is in which of them.
inline constexpr std::string_view kHuggingFaceIndex = "model.safetensors.index.json";

// Opens one file, or a folder's files as one state: those that kHuggingFaceIndex names, each tensor from the file that it gives, else all *.safetensors. They hold whole arrays, or shards with
// PyTorch's sharding information. kDamage, naming the file, for a file that is malformed, for shards that do not fit, overlap or leave a hole, and for
// what is not where the index says. kNotFound where there is no such file.
Result<std::unique_ptr<StoredSource>> OpenSafetensors(const std::string& path);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_SAFETENSORS_FILE_H_
