#include "runtime/settings.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// The first byte says which setting the others are a value of. What the check accepts can be read, and nothing else can; but for a wish to rehearse, which is
// for srun alone.
void Parse(uint8_t setting, std::string_view value) {
  const fuzz::MemoryBound bound(value.size());
  const auto id = static_cast<SettingId>(setting % kSettingCount);
  const bool to_srun = id == kSetting_rehearse && std::string(value).c_str() != std::string_view("off");
  const bool good = CheckSetting(id, value).ok() && !to_srun;
  const std::string name(GetSettingInfo(id).env);
  const auto read = ParseSettings([&](const std::string& wanted) {
    return wanted == name ? std::optional<std::string>(value) : std::nullopt;
  });
  if (!value.empty()) FUZZ_CHECK(read.ok() == good);
  static_cast<void>(ParseDuration(value));
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) cairn::Parse(data[0], cairn::fuzz::View(data + 1, size - 1));
  return 0;
}
