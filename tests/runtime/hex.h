// Bytes written out as hex digits, for literal expectations.
#ifndef CAIRN_TESTS_RUNTIME_HEX_H_
#define CAIRN_TESTS_RUNTIME_HEX_H_

#include <string>
#include <string_view>

namespace cairn {

inline std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_HEX_H_
