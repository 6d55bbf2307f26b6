#include "runtime/staging/crew.h"

#include <system_error>

#include "runtime/io/thread.h"

namespace cairn {

Crew::Crew(int size, const char* name) {
  try {
    for (int member = 1; member < size; ++member)
      helpers_.push_back(StartThread(name, [this, member] { Help(member); }));
  } catch (const std::system_error&) {
    // No more threads are to be had: those that are here do it all.
  }
}

Crew::~Crew() {
  stop_ = true;
  ++jobs_;
  jobs_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Crew::RunParts(uint32_t parts, Call call, const void* fn) {
  call_ = call;
  fn_ = fn;
  parts_ = parts;
  unfinished_.store(parts, std::memory_order_relaxed);
  untaken_.store(parts, std::memory_order_release);
  if (!helpers_.empty() && parts > 1) {
    jobs_.fetch_add(1, std::memory_order_release);
    jobs_.notify_all();
  }
  DoParts(0);
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) unfinished_.wait(left);
}

// A thread that was held up between the load and the exchange may take a part of a later job than it thinks. That
// is no error: whoever has exchanged the number sees the job that the number belongs to.
void Crew::DoParts(int member) {
  uint32_t untaken = untaken_.load(std::memory_order_relaxed);
  while (untaken != 0) {
    if (!untaken_.compare_exchange_weak(untaken, untaken - 1, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      continue;
    }
    call_(fn_, parts_ - untaken, member);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1 && member != 0) unfinished_.notify_one();
    untaken = untaken_.load(std::memory_order_relaxed);
  }
}

void Crew::Help(int member) {
  for (uint32_t seen = 0; !stop_;) {
    jobs_.wait(seen, std::memory_order_acquire);
    seen = jobs_.load(std::memory_order_acquire);
    DoParts(member);
  }
}

}  // namespace cairn
