// Little-endian numbers in byte strings, for the control plane's fixed headers.
#ifndef CAIRN_RUNTIME_CONTROL_WIRE_H_
#define CAIRN_RUNTIME_CONTROL_WIRE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

template <std::unsigned_integral T>
void PutWire(std::string* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out->push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

// bytes.size() ≥ at + sizeof(T).
template <std::unsigned_integral T>
T GetWire(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return static_cast<T>(value);
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_WIRE_H_
