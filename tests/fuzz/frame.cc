#include "runtime/control/frame.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// A stranger: nothing can come out.
void Parse(std::string_view bytes, size_t chunk) {
  const fuzz::MemoryBound bound(bytes.size());
  FrameDecoder decoder{Secret()};
  std::vector<Frame> frames;
  for (size_t at = 0; at < bytes.size(); at += chunk) {
    if (!decoder.Feed(bytes.substr(at, chunk), &frames).ok()) break;
  }
  FUZZ_CHECK(frames.empty());
}

// A peer whose stream was changed at one bit: what comes out is what was sent before it.
void ParseChanged(std::string_view payload, size_t chunk, uint32_t bit) {
  const fuzz::MemoryBound bound(8 * payload.size());
  FrameEncoder encoder{Secret()};
  const std::string first = encoder.Encode(7, payload.substr(0, payload.size() / 2));
  std::string stream = first + encoder.Encode(8, payload);
  bit %= static_cast<uint32_t>(8 * stream.size());
  stream[bit / 8] = static_cast<char>(stream[bit / 8] ^ (1 << bit % 8));
  FrameDecoder decoder{Secret()};
  std::vector<Frame> frames;
  Status status;
  for (size_t at = 0; at < stream.size() && status.ok(); at += chunk)
    status = decoder.Feed(std::string_view(stream).substr(at, chunk), &frames);
  FUZZ_CHECK(frames.size() <= (bit / 8 < first.size() ? 0u : 1u));
  if (!frames.empty())
    FUZZ_CHECK(frames[0].type == 7 && frames[0].payload == payload.substr(0, payload.size() / 2));
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 5) return 0;
  const std::string_view bytes = cairn::fuzz::View(data + 5, size - 5);
  const size_t chunk = 1 + data[0] % 64;
  cairn::Parse(bytes, chunk);
  cairn::ParseChanged(bytes, chunk, data[1] | data[2] << 8 | data[3] << 16 | uint32_t{data[4]} << 24);
  return 0;
}
