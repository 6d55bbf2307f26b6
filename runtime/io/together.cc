#include "runtime/io/together.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "runtime/io/thread.h"

namespace cairn {

Status Together(const std::vector<std::function<Status()>>& calls) {
  constexpr size_t kMaxThreads = 8;
  std::vector<Status> results(calls.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < calls.size(); i = next++) results[i] = calls[i]();
  };
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < std::min(calls.size(), kMaxThreads))
      others.push_back(StartThread("cairn-sync", work));
  } catch (const std::system_error&) {
    // Those that are there do it all.
  }
  work();
  for (std::thread& other : others) other.join();
  for (Status& result : results) CAIRN_RETURN_IF_ERROR(result);
  return OkStatus();
}

}  // namespace cairn
