#include "runtime/formats/shard.h"

#include <cstring>

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// The first 8 bytes of an input are the size of the file that it is the beginning of.
void Parse(std::string_view input) {
  if (input.size() < 16) return;
  uint64_t file_bytes = 0;
  std::memcpy(&file_bytes, input.data(), 8);
  const std::string_view bytes = input.substr(8);
  const fuzz::MemoryBound bound(bytes.size());
  const Result<uint64_t> header_bytes = ShardHeaderBytes(bytes.substr(0, 8), file_bytes);
  if (header_bytes.ok()) FUZZ_CHECK(*header_bytes <= file_bytes);
  const Result<ParsedShard> shard = ParseShard(bytes, file_bytes);
  if (!shard.ok()) return;
  // Without holes, in order, up to the end of the file.
  uint64_t at = bytes.size();
  for (const ParsedShard::Entry& entry : shard->entries) {
    FUZZ_CHECK(entry.offset == at && entry.bytes <= file_bytes - at);
    if (entry.bytes > 0)
      FUZZ_CHECK(entry.bytes ==
                 static_cast<uint64_t>(entry.tensor.box.elements() * DTypeBytes(entry.tensor.dtype)));
    at += entry.bytes;
  }
  FUZZ_CHECK(at == file_bytes);
}

// The same text, with the length in front and in a file that fit it.
std::string Framed(std::string_view text) {
  const uint64_t length = text.size(), file_bytes = 8 + length + (text.empty() ? 0 : uint8_t(text[0]));
  std::string out(16, 0);
  std::memcpy(out.data(), &file_bytes, 8);
  std::memcpy(out.data() + 8, &length, 8);
  return out.append(text.substr(text.empty() ? 0 : 1)).append(text.empty() ? "" : " ");
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(cairn::fuzz::View(data, size));
  cairn::Parse(cairn::Framed(cairn::fuzz::View(data, size)));
  return 0;
}
