// Secret: 256 bits of key material (the step's token and what is derived from it), and the keyed hash of the
// control plane: BLAKE2b.
#ifndef CAIRN_RUNTIME_CONTROL_SECRET_H_
#define CAIRN_RUNTIME_CONTROL_SECRET_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

struct Secret {
  std::array<uint8_t, 32> bytes{};

  static Secret Random();
  static Result<Secret> FromHex(
      std::string_view hex);  // 64 digits, else kInvalid; the text is never repeated in the message
  std::string Hex() const;

  // A key for another purpose; whoever holds it learns nothing about this one.
  Secret Derive(std::string_view context) const;

  // The key of the `cairn` command: may ask the leader for a save or its state, may not join as a member.
  Secret ControlKey() const { return Derive("cairn control v1"); }
};

using Mac = std::array<uint8_t, 16>;
Mac ComputeMac(const Secret& key, std::string_view first, std::string_view second);
bool SameMac(const Mac& a, const Mac& b);  // in constant time

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_SECRET_H_
