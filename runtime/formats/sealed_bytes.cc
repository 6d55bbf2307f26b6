#include "runtime/formats/sealed_bytes.h"

#include "runtime/formats/little_endian.h"
#include "runtime/io/hash.h"

namespace cairn {
namespace {

// Magic, version, four zero bytes, checksum.
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = 8, kCheckAt = 16, kHeaderBytes = 32;

std::string_view Bytes(const Hash128& hash) {
  return {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()};
}

}  // namespace

std::string SealBytes(std::string_view magic, std::string_view content) {
  std::string out(magic);
  AppendLittleEndian<uint32_t>(out, kVersion);
  AppendLittleEndian<uint32_t>(out, 0);
  out.append(Bytes(Hash128Of(content)));
  return out.append(content);
}

Result<std::string> UnsealBytes(std::string_view magic, std::string_view bytes, std::string_view what) {
  const auto damage = [&](const std::string& why) {
    return Status(Code::kDamage, std::string(what) + ": " + why);
  };
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(magic)) return damage("no magic at offset 0");
  if (const auto version = LittleEndianAt<uint32_t>(bytes, kVersionAt); version != kVersion)
    return damage("version " + std::to_string(version) + " is not known");
  const std::string_view content = bytes.substr(kHeaderBytes);
  if (bytes.substr(kCheckAt, sizeof(Hash128)) != Bytes(Hash128Of(content)))
    return damage("checksum does not fit");
  return std::string(content);
}

}  // namespace cairn
