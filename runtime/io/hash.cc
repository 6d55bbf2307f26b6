#include "runtime/io/hash.h"

// Compiled in, so that libcairn.so brings no xxHash library into the host program.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace cairn {
namespace {

Hash128 FromXxh(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Hash128 out;
  std::memcpy(out.bytes.data(), canonical.digest, out.bytes.size());
  return out;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string Hash128::ToHex() const {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (uint8_t b : bytes) {
    hex += "0123456789abcdef"[b >> 4];
    hex += "0123456789abcdef"[b & 15];
  }
  return hex;
}

std::optional<Hash128> Hash128::FromHex(std::string_view hex) {
  Hash128 out;
  if (hex.size() != 2 * out.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < out.bytes.size(); ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return out;
}

Hash128 Hash128Of(std::span<const std::byte> bytes) {
  return FromXxh(XXH3_128bits(bytes.data(), bytes.size()));
}

Hash128 Hash128Of(std::string_view bytes) { return Hash128Of(std::as_bytes(std::span(bytes))); }

struct Hasher128::State {
  XXH3_state_t xxh;
};

Hasher128::Hasher128() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher128::~Hasher128() = default;

void Hasher128::Update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

Hash128 Hasher128::Finish() const { return FromXxh(XXH3_128bits_digest(&state_->xxh)); }

}  // namespace cairn
