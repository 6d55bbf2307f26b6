#include "runtime/formats/names.h"

#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// A parser accepts exactly what its builder makes.
void Parse(const std::string& name) {
  const fuzz::MemoryBound bound(name.size());
  if (const auto epoch = names::ParseEpochFile(name)) FUZZ_CHECK(names::EpochFile(*epoch) == name);
  if (const auto attempt = names::ParseAttempt(name)) FUZZ_CHECK(attempt->ToString() == name);
  if (const auto attempt = names::ParseDead(name)) FUZZ_CHECK(names::Dead(attempt->ToString()) == name);
  if (const auto removal = names::ParseRemoved(name))
    FUZZ_CHECK(names::Removed(removal->by, removal->attempt.ToString()) == name);
  if (const auto staging = names::ParseStagingFolder(name))
    FUZZ_CHECK(names::StagingFolder(*staging) == name);
  if (const auto lines = names::ParseJournalPart(name)) FUZZ_CHECK(names::JournalPart(*lines) == name);
  if (const auto number = names::ParseShard(name)) FUZZ_CHECK(names::Shard(*number) == name);
  if (const auto number = names::ParseSums(name)) FUZZ_CHECK(names::Sums(*number) == name);
  if (const auto attempt = names::ParseStrike(name))
    FUZZ_CHECK(names::Strike(attempt->ToString()) == "strikes/" + name);
  if (const auto attempt = names::ParseLease(name)) FUZZ_CHECK(name.starts_with(attempt->ToString() + "."));
  if (names::IsValidTag(name)) FUZZ_CHECK(name.find_first_of("/\n") == name.npos && name.size() <= 100);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Parse(std::string(cairn::fuzz::View(data, size)));
  return 0;
}
