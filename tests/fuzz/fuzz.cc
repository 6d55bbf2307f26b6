#include "tests/fuzz/fuzz.h"

#include <sanitizer/allocator_interface.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/io/hash.h"

namespace cairn::fuzz {
namespace {

bool watching = false;
int64_t held_bytes = 0, bound_bytes = 0;

void OnMalloc(const volatile void*, size_t size) {
  if (!watching) return;
  held_bytes += static_cast<int64_t>(size);
  if (held_bytes <= bound_bytes) return;
  watching = false;
  std::fprintf(stderr, "more memory than the input justifies: %lld bytes, the bound is %lld\n",
               static_cast<long long>(held_bytes), static_cast<long long>(bound_bytes));
  std::abort();
}

void OnFree(const volatile void* memory) {
  if (watching && memory != nullptr)
    held_bytes -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
}

}  // namespace

MemoryBound::MemoryBound(size_t input_bytes) {
  static const int hooks = __sanitizer_install_malloc_and_free_hooks(OnMalloc, OnFree);
  if (hooks == 0) std::abort();
  held_bytes = 0;
  bound_bytes = (int64_t{1} << 20) + 256 * static_cast<int64_t>(input_bytes);
  watching = true;
}

MemoryBound::~MemoryBound() { watching = false; }

std::string HashBytes(std::string_view bytes) {
  const Hash128 hash = Hash128Of(bytes);
  return {hash.bytes.begin(), hash.bytes.end()};
}

std::string Sealed(std::string_view members) {
  return std::string(members) + ",\n  \"checksum\": \"" + Hash128Of(members).ToHex() + "\"\n}\n";
}

void Fail(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
  std::abort();
}

}  // namespace cairn::fuzz
