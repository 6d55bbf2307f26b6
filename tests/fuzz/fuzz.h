// What the fuzz targets share: a bound on memory, and seals that let an input pass its checksum.
//
// A target is LLVMFuzzerTestOneInput in a file of its parser's name. It gives the parser the input, as it is and with a valid seal, and
// asserts what the parser's header promises of what is accepted (FUZZ_CHECK). One thread.
#ifndef CAIRN_TESTS_FUZZ_FUZZ_H_
#define CAIRN_TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::fuzz {

// Ends the process, so that the fuzzer keeps the input, when more is allocated at a time while it lives than an input of this size
// justifies: 1 MiB, and 256 bytes for each of its own (one byte of JSON can be a whole value).
class MemoryBound {
 public:
  explicit MemoryBound(size_t input_bytes);
  ~MemoryBound();
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;
};

inline std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The hash of `bytes` as 16 bytes.
std::string HashBytes(std::string_view bytes);

// `members` (the text of a JSON object without its closing brace) with the end of a sealed file (docs/design/formats.md, section 6).
std::string Sealed(std::string_view members);

[[noreturn]] void Fail(const char* file, int line, const char* what);

#define FUZZ_CHECK(condition) \
  if (!(condition)) ::cairn::fuzz::Fail(__FILE__, __LINE__, #condition)

}  // namespace cairn::fuzz

#endif  // CAIRN_TESTS_FUZZ_FUZZ_H_
