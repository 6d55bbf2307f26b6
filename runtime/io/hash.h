// Hash128: XXH3-128 with seed 0, the checksum of everything on disk. It finds accidents; it is no defence
// against forgery.
#ifndef CAIRN_RUNTIME_IO_HASH_H_
#define CAIRN_RUNTIME_IO_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

// 16 bytes in xxHash's canonical order (big-endian), as they lie on disk; the hex form is what `xxhsum -H2`
// prints.
struct Hash128 {
  std::array<uint8_t, 16> bytes{};

  std::string ToHex() const;                                    // 32 lower-case digits
  static std::optional<Hash128> FromHex(std::string_view hex);  // exactly 32 lower-case digits

  friend bool operator==(const Hash128&, const Hash128&) = default;
};

Hash128 Hash128Of(std::span<const std::byte> bytes);
Hash128 Hash128Of(std::string_view bytes);

// The hash of a concatenation, given part by part.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;

  void Update(std::span<const std::byte> bytes);
  Hash128 Finish() const;  // of what was given so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_HASH_H_
