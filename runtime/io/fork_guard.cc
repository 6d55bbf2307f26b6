#include "runtime/io/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>

namespace cairn {
namespace {

constexpr int kBits = 64;
constexpr int kMaxFd = 65536;

// One bit for each descriptor: readable in the child of a fork without a lock, whatever thread forked.
std::array<std::atomic<uint64_t>, kMaxFd / kBits> owned;
std::atomic<uint64_t> generation{0};

void InChild() {
  generation.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < kMaxFd / kBits; ++i) {
    for (uint64_t bits = owned[static_cast<size_t>(i)].exchange(0); bits != 0; bits &= bits - 1) {
      close(i * kBits + std::countr_zero(bits));
    }
  }
}

}  // namespace

void ForkGuard::Own(int fd) {
  [[maybe_unused]] static const int installed = pthread_atfork(nullptr, nullptr, InChild);
  if (fd < 0 || fd >= kMaxFd) return;
  owned[static_cast<size_t>(fd / kBits)].fetch_or(uint64_t{1} << (fd % kBits));
}

bool ForkGuard::Disown(int fd) {
  if (fd < 0 || fd >= kMaxFd) return fd >= 0;
  const uint64_t bit = uint64_t{1} << (fd % kBits);
  return (owned[static_cast<size_t>(fd / kBits)].fetch_and(~bit) & bit) != 0;
}

uint64_t ForkGuard::Generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace cairn
