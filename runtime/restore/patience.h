// Patience: for a loop that asks other ranks' doings by polling. One thread.
#ifndef CAIRN_RUNTIME_RESTORE_PATIENCE_H_
#define CAIRN_RUNTIME_RESTORE_PATIENCE_H_

#include <chrono>
#include <thread>

namespace cairn {

class Patience {
 public:
  // Something has moved.
  void Renew() {
    since_ = Clock::now();
    polls_ = 0;
  }
  // Nothing has. Spins for a moment, then sleeps between polls: MPI moves only while it is called, and other ranks may want the processor.
  void Wait() {
    if (++polls_ < kSpins) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  // How long nothing has moved.
  std::chrono::nanoseconds waited() const { return Clock::now() - since_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kSpins = 1000;

  Clock::time_point since_ = Clock::now();
  int polls_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_PATIENCE_H_
