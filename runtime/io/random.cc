#include "runtime/io/random.h"

#include <sys/random.h>

#include <cerrno>
#include <vector>

namespace cairn {

std::string RandomHex(int digits) {
  std::vector<unsigned char> bytes(static_cast<size_t>(digits + 1) / 2);
  // Requests of up to 256 bytes are never short; only a signal before the generator is seeded can interrupt.
  while (getrandom(bytes.data(), bytes.size(), 0) < 0 && errno == EINTR) {
  }
  std::string hex;
  for (int i = 0; i < digits; ++i) {
    const unsigned char byte = bytes[static_cast<size_t>(i / 2)];
    hex += "0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15];
  }
  return hex;
}

}  // namespace cairn
