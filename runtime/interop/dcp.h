// Checkpoints of torch.distributed.checkpoint (DCP): a folder with `.metadata` and `__P_K.distcp` files, each a row of archives of torch.save.
// No PyTorch is needed.
#ifndef CAIRN_RUNTIME_INTEROP_DCP_H_
#define CAIRN_RUNTIME_INTEROP_DCP_H_

#include <memory>
#include <span>
#include <string>

#include "planner/base/status.h"
#include "runtime/formats/blobs.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/export.h"
#include "runtime/interop/name_map.h"
#include "runtime/interop/stored_source.h"

namespace cairn {

inline constexpr std::string_view kDcpMetadata = ".metadata";

// Its tensors; objects that are no tensors are others(). DCP has no checksums: damage inside a tensor's bytes cannot be told. Errors as
// DecodeDcpMetadata's, with the file's path.
Result<std::unique_ptr<StoredSource>> OpenDcp(const std::string& folder);

// A folder that torch.distributed.checkpoint.load reads: a new file is begun after each `file_limit` bytes. A blob becomes a list of the bytes of
// each rank, None where it had none. kInvalid when a blob has the name of an array or is too large for an archive (kMaxArchivedBytes).
Result<Exported> ExportDcp(ArraySource& source, std::span<const NamedArray> arrays,
                           std::span<const BlobItem> blobs, const std::string& path, uint64_t file_limit,
                           const Progress& progress);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_DCP_H_
