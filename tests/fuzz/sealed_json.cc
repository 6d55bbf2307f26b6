#include "runtime/formats/sealed_json.h"

#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

void Parse(std::string_view text) {
  const fuzz::MemoryBound bound(text.size());
  for (const char* kind : {"run", "epoch"}) {
    const auto members = UnsealJson(kind, text);
    if (!members.ok()) continue;
    JsonFields fields(*members, "input");
    static_cast<void>(fields.String("name"));
    static_cast<void>(fields.Unsigned("epoch", UINT32_MAX));
    static_cast<void>(fields.Signed("pid"));
    static_cast<void>(fields.Hash("index"));
    static_cast<void>(fields.Array("shards").size());
    static_cast<void>(fields.Object("settings").size());
    static_cast<void>(fields.Bool("left"));
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(cairn::fuzz::View(data, size));
  cairn::Parse(cairn::fuzz::Sealed(cairn::fuzz::View(data, size)));
  return 0;
}
