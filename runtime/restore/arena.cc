#include "runtime/restore/arena.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/formats/sums.h"

namespace cairn {
namespace {

constexpr uint64_t kHeadBytes = 4096;
constexpr uint64_t kArenaBytes = kHeadBytes + Arena::kPlaces * kBlockBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr timespec kLook{0, 50'000'000};  // between two looks at the breaker

static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

Result<Arena> Arena::Make() {
  UniqueFd fd(memfd_create("cairn-restore", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Status::FromErrno(errno, "take memory to share");
  CAIRN_ASSIGN_OR_RETURN(Mapping memory, Mapping::Make(fd.get(), kArenaBytes, "memory to share",
                                                       [](uint64_t) { return OkStatus(); }));
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return Status::FromErrno(errno, "seal memory to share");
  return Arena(std::move(fd), std::move(memory));
}

Result<Arena> Arena::Open(UniqueFd fd) {
  struct stat st;
  if ((fcntl(fd.get(), F_GET_SEALS) & kSeals) != kSeals || fstat(fd.get(), &st) != 0 ||
      static_cast<uint64_t>(st.st_size) != kArenaBytes)
    return Status(Code::kInvalid, "another rank's descriptor is not one of memory to share");
  CAIRN_ASSIGN_OR_RETURN(Mapping memory, Mapping::Share(fd.get(), kArenaBytes, "memory to share"));
  return Arena(std::move(fd), std::move(memory));
}

std::span<std::byte> Arena::At(uint32_t place) const {
  return {memory_.data() + kHeadBytes + place * kBlockBytes, kBlockBytes};
}

std::atomic<uint32_t>& Arena::Count(uint32_t place) const {
  return reinterpret_cast<std::atomic<uint32_t>*>(memory_.data())[place];
}

Result<uint32_t> Arena::Take(const Breaker& breaker) {
  const uint32_t place = std::exchange(next_, (next_ + 1) % kPlaces);
  std::atomic<uint32_t>& count = Count(place);
  while (const uint32_t seen = count.load(std::memory_order_acquire)) {
    CAIRN_RETURN_IF_ERROR(breaker.status());
    syscall(SYS_futex, &count, FUTEX_WAIT, seen, &kLook, nullptr, 0);
  }
  count.store(1, std::memory_order_relaxed);
  return place;
}

void Arena::Hold(uint32_t place) { Count(place).fetch_add(1, std::memory_order_relaxed); }

void Arena::Drop(uint32_t place) {
  if (Count(place).fetch_sub(1, std::memory_order_acq_rel) == 1)
    syscall(SYS_futex, &Count(place), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace cairn
