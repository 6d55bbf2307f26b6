// Fixed-width little-endian numbers of the binary formats.
#ifndef CAIRN_RUNTIME_FORMATS_LITTLE_ENDIAN_H_
#define CAIRN_RUNTIME_FORMATS_LITTLE_ENDIAN_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace cairn {

template <typename Unsigned>
void AppendLittleEndian(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// bytes.size() >= offset + sizeof(Unsigned).
template <typename Unsigned>
Unsigned LittleEndianAt(std::string_view bytes, size_t offset) {
  Unsigned value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Unsigned>(static_cast<Unsigned>(static_cast<unsigned char>(bytes[offset + i]))
                                   << (8 * i));
  }
  return value;
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_LITTLE_ENDIAN_H_
