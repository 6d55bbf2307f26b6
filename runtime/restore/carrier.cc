#include "runtime/restore/carrier.h"

#include <mutex>
#include <utility>
#include <vector>

namespace cairn {

void KeepForGood(std::shared_ptr<void> memory) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<void>>;  // guarded by mutex
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(memory));
}

}  // namespace cairn
