#include "runtime/formats/counter.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  const Result<Counter> counter = DecodeCounter(bytes);
  if (counter.ok()) FUZZ_CHECK(EncodeCounter(*counter) == bytes);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = cairn::fuzz::View(data, size);
  cairn::Parse(bytes);
  const std::string_view head = bytes.substr(0, std::min<size_t>(size, 32));
  cairn::Parse(std::string(head) + cairn::fuzz::HashBytes(head));
  return 0;
}
