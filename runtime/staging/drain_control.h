// DrainControl: how others steer and watch one drain, or one copy that writes through. Any thread.
#ifndef CAIRN_RUNTIME_STAGING_DRAIN_CONTROL_H_
#define CAIRN_RUNTIME_STAGING_DRAIN_CONTROL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "runtime/staging/pace.h"

namespace cairn {

class DrainControl {
 public:
  void Cancel();  // it ends soon, with kCancelled; for good
  void Hurry();   // limit and priority count no more; for good
  bool cancelled() const { return cancelled_; }
  bool hurried() const { return hurried_; }

  uint64_t bytes_written() const { return bytes_written_; }
  std::string_view writer() const { return writer_.load(); }  // WriteEngine::name(); "" = none yet
  // How long nothing was written, for the limit's sake. A hurried one would take so much less.
  std::chrono::nanoseconds held_back() const { return std::chrono::nanoseconds(held_back_ns_); }

  // The drain's side.
  // Called by whoever cancels, at once if somebody has; must not block. Null: no more, and it is not being called once this returns.
  void OnCancel(std::function<void()> fn);
  void SleepUntil(Pace::TimePoint when);  // or until somebody cancels or hurries
  void AddWritten(uint64_t bytes) { bytes_written_ += bytes; }
  void SetWriter(std::string_view literal) { writer_ = literal.data(); }

 private:
  std::mutex mutex_;  // orders the flags' changes with the sleep
  std::condition_variable changed_;
  std::function<void()> on_cancel_;  // guarded by mutex_
  std::atomic<bool> cancelled_{false}, hurried_{false};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<int64_t> held_back_ns_{0};
  std::atomic<const char*> writer_{""};
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_DRAIN_CONTROL_H_
