#include "runtime/formats/counter.h"

#include <cstring>

#include "runtime/formats/little_endian.h"
#include "runtime/io/hash.h"

// The layout is described in docs/design/formats.md, section 7.

namespace cairn {
namespace {

constexpr std::string_view kMagic = "CAIRNCNT";
constexpr uint32_t kVersion = 1;
constexpr size_t kHashOffset = 32;

std::string HashBytes(std::string_view bytes) {
  const Hash128 hash = Hash128Of(bytes);
  return std::string(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size());
}

}  // namespace

std::string EncodeCounter(const Counter& counter) {
  std::string out(kMagic);
  AppendLittleEndian<uint32_t>(out, kVersion);
  AppendLittleEndian<uint32_t>(out, kCounterBytes);
  AppendLittleEndian<uint64_t>(out, counter.value);
  AppendLittleEndian<uint64_t>(out, counter.left ? 1 : 0);
  return out + HashBytes(out);
}

Result<Counter> DecodeCounter(std::string_view bytes) {
  const auto damage = [](std::string what) { return Status(Code::kDamage, "counter: " + std::move(what)); };
  if (bytes.size() != kCounterBytes)
    return damage("has " + std::to_string(bytes.size()) + " bytes instead of 48");
  if (bytes.substr(kHashOffset) != HashBytes(bytes.substr(0, kHashOffset))) {
    return damage("its checksum at byte 32 does not match");
  }
  if (bytes.substr(0, kMagic.size()) != kMagic) return damage("wrong magic at byte 0");
  if (LittleEndianAt<uint32_t>(bytes, 8) != kVersion) return damage("unknown version at byte 8");
  if (LittleEndianAt<uint32_t>(bytes, 12) != kCounterBytes) return damage("wrong length at byte 12");
  const auto left = LittleEndianAt<uint64_t>(bytes, 24);
  if (left > 1) return damage("wrong flag at byte 24");
  return Counter{LittleEndianAt<uint64_t>(bytes, 16), left == 1};
}

}  // namespace cairn
