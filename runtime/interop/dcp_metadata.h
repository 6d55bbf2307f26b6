// The two pickles of a checkpoint of torch.distributed.checkpoint (DCP): `.metadata`, which says where each chunk of each tensor lies, and
// data.pkl, which says how a tensor lies in the archive that torch.save made of a chunk. Pure; any thread.
//
// Nothing but the classes that DCP itself writes there is admitted (pickle.h).
#ifndef CAIRN_RUNTIME_INTEROP_DCP_METADATA_H_
#define CAIRN_RUNTIME_INTEROP_DCP_METADATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/box.h"
#include "planner/base/dtype.h"
#include "planner/base/status.h"

namespace cairn {

struct DcpChunk {
  Box box;
  std::string file;     // a plain name, in the checkpoint's folder
  uint64_t offset = 0;  // of the archive in the file, bytes
  uint64_t bytes = 0;   // of the archive
};

struct DcpTensor {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  std::vector<DcpChunk> chunks;
};

// What is no tensor: an archive of torch.save.
struct DcpObject {
  std::string name;
  // Where it lies: written, not read.
  std::string file;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Whether PyTorch has the type: only of such are there tensors.
bool TorchHas(DType dtype);

struct DcpMetadata {
  std::vector<DcpTensor> tensors;
  std::vector<DcpObject> objects;
};

// kMismatch for what is well-formed and not read: foreign classes, element types that Cairn has not, transformed (compressed) chunks. kDamage
// for what is malformed. The messages name the tensor, or the offset in the pickle.
Result<DcpMetadata> DecodeDcpMetadata(std::string bytes);
std::string EncodeDcpMetadata(const DcpMetadata& metadata);

// A tensor in its archive.
struct ArchivedTensor {
  DType dtype = DType::kF32;
  std::string storage;  // the member is data/<storage>
  int64_t first = 0;    // its first element, in elements from the storage's start
  Dims shape;
  Dims stride;  // elements, not negative
};

// Errors as above.
Result<ArchivedTensor> DecodeArchivedTensor(std::string data_pkl);
// A dense tensor in storage "0".
std::string EncodeArchivedTensor(DType dtype, const Dims& shape);
// A list of bytes, and None for nothing.
std::string EncodeArchivedBytes(const std::vector<std::optional<std::string>>& list);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_DCP_METADATA_H_
