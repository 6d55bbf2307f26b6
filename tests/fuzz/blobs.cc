#include "runtime/formats/blobs.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// The one form that is accepted is the one that is written.
void Parse(std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  const Result<Blobs> blobs = DecodeBlobs(bytes);
  if (!blobs.ok()) return;
  const Result<std::string> again = EncodeBlobs(*blobs);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(DecodeBlobs(*again).ok() && *DecodeBlobs(*again) == *blobs);
}

// Section 5 of docs/design/formats.md around a payload.
std::string Framed(std::string_view payload) {
  std::string out =
      "\x84\x68"
      "CAIRNBLB\x01\x5b";
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(payload.size() >> shift));
  return out.append(payload) + "\x50" + fuzz::HashBytes(payload);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(cairn::fuzz::View(data, size));
  cairn::Parse(cairn::Framed(cairn::fuzz::View(data, size)));
  return 0;
}
