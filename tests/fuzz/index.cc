#include "runtime/formats/index.h"

#include <cstring>

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  const Result<Index> index = DecodeIndex(bytes);
  if (!index.ok()) return;
  FUZZ_CHECK(ValidateIndex(*index).ok());
  const Result<std::string> again = EncodeIndex(*index);
  FUZZ_CHECK(again.ok());
  const Result<Index> same = DecodeIndex(*again);
  FUZZ_CHECK(same.ok() && same->world_size == index->world_size && same->files == index->files);
  FUZZ_CHECK(same->saved.arrays == index->saved.arrays &&
             same->saved.boxes.size() == index->saved.boxes.size());
}

// Section 4 of docs/design/formats.md around a payload.
std::string Framed(std::string_view payload) {
  const uint32_t version = 1, header_bytes = 48;
  const uint64_t size = payload.size(), zero = 0;
  std::string out = "CAIRNIDX";
  const auto put = [&out](const auto& number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(version), put(header_bytes), put(size), put(zero);
  return out.append(fuzz::HashBytes(payload)).append(payload);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = cairn::fuzz::View(data, size);
  cairn::Parse(bytes);
  cairn::Parse(cairn::Framed(bytes));
  return 0;
}
