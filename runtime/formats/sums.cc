#include "runtime/formats/sums.h"

#include <cstring>

#include "runtime/formats/little_endian.h"
#include "runtime/formats/newer_version.h"

// The layout is described in docs/design/formats.md, section 3.

namespace cairn {
namespace {

constexpr std::string_view kMagic = "CAIRNSUM";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 48;
constexpr size_t kHashBytes = 16;

void AppendHash(std::string& out, const Hash128& hash) {
  out.append(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size());
}

Hash128 HashAt(std::string_view bytes, size_t offset) {
  Hash128 hash;
  std::memcpy(hash.bytes.data(), bytes.data() + offset, hash.bytes.size());
  return hash;
}

Status Damage(std::string what) { return {Code::kDamage, "checksum file: " + std::move(what)}; }

}  // namespace

Hash128 Sums::Root() const { return Hash128Of(std::as_bytes(std::span(blocks))); }

uint64_t EncodedSumsBytes(uint64_t file_bytes) {
  return kHeaderBytes + kHashBytes * BlockCount(file_bytes) + kHashBytes;
}

std::string EncodeSums(const Sums& sums) {
  std::string out(kMagic);
  out.reserve(EncodedSumsBytes(sums.file_bytes));
  AppendLittleEndian<uint32_t>(out, kVersion);
  AppendLittleEndian<uint32_t>(out, kBlockBytes);
  AppendLittleEndian<uint64_t>(out, sums.file_bytes);
  AppendLittleEndian<uint64_t>(out, sums.blocks.size());
  AppendHash(out, sums.Root());
  for (const Hash128& hash : sums.blocks) AppendHash(out, hash);
  AppendHash(out, Hash128Of(out));
  return out;
}

Result<Sums> DecodeSums(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kHashBytes) {
    return Damage("has " + std::to_string(bytes.size()) + " bytes, fewer than its header");
  }
  if (bytes.substr(0, kMagic.size()) != kMagic) return Damage("wrong magic at byte 0");
  const size_t end = bytes.size() - kHashBytes;
  const bool whole = HashAt(bytes, end) == Hash128Of(bytes.substr(0, end));
  const auto version = LittleEndianAt<uint32_t>(bytes, 8);
  if (version > kVersion && whole) return NewerVersion("checksum file", version, kVersion);
  if (version != kVersion)
    return Damage("version " + std::to_string(version) + " at byte 8, this reader knows 1");
  const auto block_bytes = LittleEndianAt<uint32_t>(bytes, 12);
  if (block_bytes != kBlockBytes)
    return Damage("blocks of " + std::to_string(block_bytes) + " bytes at byte 12");
  Sums sums;
  sums.file_bytes = LittleEndianAt<uint64_t>(bytes, 16);
  const auto count = LittleEndianAt<uint64_t>(bytes, 24);
  if (count != BlockCount(sums.file_bytes)) {
    return Damage(std::to_string(count) + " blocks at byte 24 do not fit a file of " +
                  std::to_string(sums.file_bytes) + " bytes");
  }
  if (bytes.size() != EncodedSumsBytes(sums.file_bytes)) {  // cannot overflow: count is at most 2^42
    return Damage("has " + std::to_string(bytes.size()) + " bytes instead of " +
                  std::to_string(EncodedSumsBytes(sums.file_bytes)));
  }
  if (!whole) {
    return Damage("its own checksum at byte " + std::to_string(end) + " does not match");
  }
  sums.blocks.resize(count);
  for (uint64_t i = 0; i < count; ++i) sums.blocks[i] = HashAt(bytes, kHeaderBytes + kHashBytes * i);
  if (HashAt(bytes, 32) != sums.Root()) return Damage("the root at byte 32 does not match the blocks");
  return sums;
}

}  // namespace cairn
