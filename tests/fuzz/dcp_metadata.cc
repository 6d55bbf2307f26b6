#include "runtime/interop/dcp_metadata.h"

#include <string>

#include "planner/layout.h"
#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// Both pickles of a checkpoint, and below them the reader of pickles.
void Parse(std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  if (const Result<ArchivedTensor> tensor = DecodeArchivedTensor(std::string(bytes)); tensor.ok()) {
    FUZZ_CHECK(tensor->first >= 0 && tensor->stride.size() == tensor->shape.size());
    for (int d = 0; d < tensor->shape.size(); ++d)
      FUZZ_CHECK(tensor->shape[d] >= 0 && tensor->stride[d] >= 0);
  }
  const Result<DcpMetadata> metadata = DecodeDcpMetadata(std::string(bytes));
  if (!metadata.ok()) return;
  for (const DcpTensor& tensor : metadata->tensors) {
    for (const DcpChunk& chunk : tensor.chunks) {
      FUZZ_CHECK(CheckBox({tensor.name, tensor.dtype, false, tensor.shape}, chunk.box).ok());
      FUZZ_CHECK(!chunk.file.empty() && chunk.file.find('/') == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(cairn::fuzz::View(data, size));
  return 0;
}
