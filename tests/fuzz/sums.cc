#include "runtime/formats/sums.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  const Result<Sums> sums = DecodeSums(bytes);
  if (sums.ok()) FUZZ_CHECK(EncodeSums(*sums) == bytes);
}

// Section 3 of docs/design/formats.md: the root over the hashes from byte 48 on, and the hash of everything behind them.
std::string Framed(std::string bytes) {
  if (bytes.size() >= 48) bytes.replace(32, 16, fuzz::HashBytes(std::string_view(bytes).substr(48)));
  return bytes + fuzz::HashBytes(bytes);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(cairn::fuzz::View(data, size));
  cairn::Parse(cairn::Framed(std::string(cairn::fuzz::View(data, size))));
  return 0;
}
