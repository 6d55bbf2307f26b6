#include "runtime/formats/manifest.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(std::string_view text) {
  const fuzz::MemoryBound bound(text.size());
  const Result<Manifest> manifest = DecodeManifest(text);
  if (!manifest.ok()) return;
  const Result<std::string> again = EncodeManifest(*manifest);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(DecodeManifest(*again).ok() && *DecodeManifest(*again) == *manifest);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(cairn::fuzz::View(data, size));
  cairn::Parse(cairn::fuzz::Sealed(cairn::fuzz::View(data, size)));
  return 0;
}
