#include "runtime/staging/slot_record.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  static_cast<void>(DecodeSlotRecord(bytes));
  const Result<std::string> state = DecodeLayoutFile(bytes);
  if (state.ok()) FUZZ_CHECK(bytes.ends_with(*state));
}

// A record (docs/design/staging.md) whose first byte says how many of the others are the head's table.
std::string Framed(std::string_view input) {
  const std::string_view table = input.substr(1, static_cast<uint8_t>(input[0]));
  const uint32_t numbers[] = {1, static_cast<uint32_t>(16 + table.size() + 16)};
  std::string head = "CAIRNREC";
  head.append(reinterpret_cast<const char*>(numbers), sizeof numbers).append(table);
  return head + fuzz::HashBytes(head) + std::string(input.substr(1 + table.size()));
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = cairn::fuzz::View(data, size);
  cairn::Parse(bytes);
  if (!bytes.empty()) cairn::Parse(cairn::Framed(bytes));
  return 0;
}
