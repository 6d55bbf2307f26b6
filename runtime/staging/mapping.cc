#include "runtime/staging/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/io/thread.h"

namespace cairn {
namespace {

constexpr uint64_t kChunkBytes = 64 << 20;

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

uint64_t WholePages(uint64_t bytes) { return (bytes + PageBytes() - 1) / PageBytes() * PageBytes(); }

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, WholePages(size_bytes_));
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Result<Mapping> Mapping::Map(int fd, uint64_t bytes, int flags, const std::string& name) {
  if (bytes == 0) return Status(Code::kInvalid, "mapping " + name + ": no bytes");
  const uint64_t whole = WholePages(bytes);
  void* address = mmap(nullptr, whole, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (address == MAP_FAILED)
    return Status::FromErrno(errno, "map " + std::to_string(whole) + " bytes for " + name);
  Mapping mapping;
  mapping.data_ = static_cast<std::byte*>(address);
  mapping.size_bytes_ = bytes;
  // A child would keep the pages alive, and copy on write would turn each store of the next snapshot into a page fault.
  if (madvise(address, whole, MADV_DONTFORK) != 0)
    return Status::FromErrno(errno, "madvise(DONTFORK) of " + name);
  return mapping;
}

Result<Mapping> Mapping::OfFile(int fd, uint64_t bytes, const std::string& name) {
  return Map(fd, bytes, MAP_PRIVATE | MAP_NORESERVE, name);
}

Result<Mapping> Mapping::Share(int fd, uint64_t bytes, const std::string& name) {
  return Map(fd, bytes, MAP_SHARED, name);
}

Result<Mapping> Mapping::Make(int fd, uint64_t bytes, const std::string& name,
                              const MayTakeFunction& may_take) {
  CAIRN_ASSIGN_OR_RETURN(
      Mapping mapping,
      Map(fd, bytes, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, name));
  if (fd < 0)  // a hint: refused where the kernel has none
    madvise(mapping.data_, WholePages(bytes), MADV_HUGEPAGE);
  for (uint64_t done = 0; done < bytes; done += kChunkBytes) {
    const uint64_t chunk = std::min(kChunkBytes, bytes - done);
    CAIRN_RETURN_IF_ERROR(may_take(chunk));
    if (fd >= 0) {
      // When a signal comes tmpfs gives back what it has of the chunk: a program with a profiling timer would never get one.
      const SignalsBlocked undisturbed;
      if (const int error = posix_fallocate(fd, static_cast<off_t>(done), static_cast<off_t>(chunk));
          error != 0) {
        return Status::FromErrno(error, "allocate " + name + " in the local tier, at byte " +
                                            std::to_string(done) + " of " + std::to_string(bytes));
      }
    }
    for (uint64_t page = 0; page < chunk; page += PageBytes()) {
      *reinterpret_cast<volatile std::byte*>(mapping.data_ + done + page) = std::byte{0};
    }
  }
  return mapping;
}

}  // namespace cairn
