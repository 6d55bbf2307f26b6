// Arena: memory that the ranks of a node share during a restore. What one rank has read is not sent to the others of its node: it tells them where
// it lies, and each takes what it wants from there.
//
//   1. The reader takes a place whose count is 0, and counts itself. It reads a block into it and verifies it.
//   2. Whoever tells a rank of the place counts it first, and hands the arena's descriptor along (BulkSender::Send).
//   3. Whoever has taken what it wants counts itself off, the reader too. At 0 the place is free again.
// Counts lie in the arena's first page. Only readers wait for a place, and who is told of one waits for nobody before it counts itself off: so the
// wait ends. When a rank dies its count stays, and the breaker ends the wait.
//
// The descriptor is that of an anonymous file (memfd) that can neither shrink nor grow, so a bad fellow cannot cause a SIGBUS. Memory: kPlaces
// blocks; few, so that they stay in the CPU's cache.
#ifndef CAIRN_RUNTIME_RESTORE_ARENA_H_
#define CAIRN_RUNTIME_RESTORE_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "planner/base/status.h"
#include "runtime/bulk/breaker.h"
#include "runtime/io/fd.h"
#include "runtime/staging/mapping.h"

namespace cairn {

// Move-only. Hold and Drop: any thread of any process that has it.
class Arena {
 public:
  static constexpr uint32_t kPlaces = 2;

  static Result<Arena> Make();  // the reader's
  static Result<Arena> Open(
      UniqueFd fd);  // a taker's, of the descriptor that came along. kInvalid: it is none

  int fd() const { return fd_.get(); }
  std::span<std::byte> At(uint32_t place) const;  // a block's room, aligned for O_DIRECT

  // The reader, one thread: waits for a free place, and counts itself. The breaker's reason.
  Result<uint32_t> Take(const Breaker& breaker);
  void Hold(uint32_t place);
  void Drop(uint32_t place);

 private:
  Arena(UniqueFd fd, Mapping memory) : fd_(std::move(fd)), memory_(std::move(memory)) {}
  std::atomic<uint32_t>& Count(uint32_t place) const;

  UniqueFd fd_;
  Mapping memory_;
  uint32_t next_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_ARENA_H_
