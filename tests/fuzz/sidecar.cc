#include "runtime/staging/sidecar.h"

#include <cstring>

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(const std::byte* bytes, size_t size) {
  const fuzz::MemoryBound bound(size);
  static_cast<void>(DecodeSidecar(bytes, size));
}

// What a writer made of the input, but for the last 64 bytes of it.
void ParseWritten(const std::byte* input, size_t size) {
  struct {
    SnapshotId id;
    Hash128 content;
  } given{};
  if (size < sizeof given) return;
  std::memcpy(&given.id.epoch, input, 24);
  std::memcpy(given.id.layout.bytes.data(), input + 24, 16);
  alignas(8) std::byte bytes[kSidecarBytes] = {};
  Sidecar sidecar(bytes);
  sidecar.Begin(given.id);
  sidecar.MarkStaged();
  const auto read = DecodeSidecar(bytes, sizeof bytes);
  FUZZ_CHECK(read.ok() && read->id == given.id && read->state == SlotState::kStaged);
  const size_t at = static_cast<size_t>(input[40]) % 64;  // the fields and their check
  bytes[at] ^= std::byte{1} << (static_cast<int>(input[41]) % 8);
  const auto flipped = DecodeSidecar(bytes, sizeof bytes);
  FUZZ_CHECK(!flipped.ok() || flipped->id == given.id || flipped->state != SlotState::kStaged);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  cairn::Parse(bytes, size);
  cairn::ParseWritten(bytes, size);
  return 0;
}
