#include "runtime/control/secret.h"

#include <sodium.h>

namespace cairn {
namespace {

const uint8_t* Bytes(std::string_view s) { return reinterpret_cast<const uint8_t*>(s.data()); }

}  // namespace

Secret Secret::Random() {
  [[maybe_unused]] const int ready = sodium_init();
  Secret s;
  randombytes_buf(s.bytes.data(), s.bytes.size());
  return s;
}

Result<Secret> Secret::FromHex(std::string_view hex) {
  Secret s;
  size_t size = 0;
  const char* end = nullptr;
  const int rc = sodium_hex2bin(s.bytes.data(), s.bytes.size(), hex.data(), hex.size(), nullptr, &size, &end);
  if (rc != 0 || size != s.bytes.size() || end != hex.data() + hex.size()) {
    return Status(Code::kInvalid, "the token must be 64 hexadecimal digits, this one has " +
                                      std::to_string(hex.size()) + " characters");
  }
  return s;
}

std::string Secret::Hex() const {
  std::string hex(bytes.size() * 2 + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
  hex.pop_back();
  return hex;
}

Secret Secret::Derive(std::string_view context) const {
  Secret s;
  crypto_generichash(s.bytes.data(), s.bytes.size(), Bytes(context), context.size(), bytes.data(),
                     bytes.size());
  return s;
}

Mac ComputeMac(const Secret& key, std::string_view first, std::string_view second) {
  Mac mac{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.bytes.data(), key.bytes.size(), mac.size());
  crypto_generichash_update(&state, Bytes(first), first.size());
  crypto_generichash_update(&state, Bytes(second), second.size());
  crypto_generichash_final(&state, mac.data(), mac.size());
  return mac;
}

bool SameMac(const Mac& a, const Mac& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace cairn
