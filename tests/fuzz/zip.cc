#include "runtime/interop/zip.h"

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/io/fd.h"
#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// The first byte of an input is where the archive begins in its file.
void Parse(int fd, std::string_view input) {
  if (input.empty()) return;
  const uint64_t begin = static_cast<uint8_t>(input[0]);
  if (begin > input.size()) return;
  const fuzz::MemoryBound bound(input.size());
  const Result<ZipSlice> zip = ZipSlice::Open(fd, "archive", begin, input.size() - begin);
  if (!zip.ok()) return;
  for (const ZipMember& member : zip->members()) {
    const Result<uint64_t> at = zip->DataOffset(member);
    if (at.ok()) FUZZ_CHECK(*at >= begin && *at <= input.size() && member.bytes <= input.size() - *at);
    const Result<std::string> bytes = zip->Read(member, 4096);
    if (bytes.ok()) FUZZ_CHECK(at.ok() && *bytes == input.substr(*at, member.bytes));
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cairn::UniqueFd fd(memfd_create("archive", MFD_CLOEXEC));
  FUZZ_CHECK(write(fd.get(), data, size) == static_cast<ssize_t>(size));
  cairn::Parse(fd.get(), cairn::fuzz::View(data, size));
  return 0;
}
