// Loop: one libuv loop on a thread of its own; never the default loop. All signals are blocked in that
// thread, so the host program's handlers never run there.
//
// Threads: Post and Run from any thread; everything else, Timer and FdWatcher included, on the loop's thread.
// What runs on the loop must not block. Destroy every Timer and FdWatcher before the Loop (on its thread). In
// a forked child a Loop is inert: Post drops, the destructor returns.
#ifndef CAIRN_RUNTIME_CONTROL_LOOP_H_
#define CAIRN_RUNTIME_CONTROL_LOOP_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "planner/base/status.h"

struct uv_loop_s;

namespace cairn {

class Loop {
 public:
  // Starts the thread; `name` (at most 15 bytes) is what top and gdb show.
  static Result<std::unique_ptr<Loop>> Start(const std::string& name);

  // Runs what was posted, then ends and joins the thread. Not on the loop's own thread.
  ~Loop();

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Queues `fn` to run on the loop's thread, in the order of the calls.
  void Post(std::function<void()> fn);

  // Post and wait until it has run; at once when called on the loop's thread. In a forked child it returns
  // without running it.
  void Run(const std::function<void()>& fn);

  bool OnLoopThread() const;

  uv_loop_s* uv();

 private:
  struct Impl;
  explicit Loop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A timer. The destructor stops it; after that (or Stop) `fn` is not called again. `fn` may destroy the
// timer.
class Timer {
 public:
  Timer(Loop* loop, std::function<void()> fn);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void Once(std::chrono::milliseconds delay);
  void Every(
      std::chrono::milliseconds interval);  // first after one interval; missed ticks are not made up for
  void Stop();

 private:
  struct Handle;
  Handle* handle_;
};

// Watches a descriptor (an eventfd, a socket). Does not own it: close it after the watcher's destruction.
// `fn` may destroy the watcher. One that the kernel does not let be watched (no memory, no such descriptor) stays silent, as one on which
// nothing comes.
class FdWatcher {
 public:
  using Callback = std::function<void(bool readable, bool writable)>;
  FdWatcher(Loop* loop, int fd, Callback fn);  // watches nothing until Watch
  ~FdWatcher();
  FdWatcher(const FdWatcher&) = delete;
  FdWatcher& operator=(const FdWatcher&) = delete;

  // Level triggered. An error or hang-up counts as readable and writable: the next read or write tells which.
  void Watch(bool read, bool write);

 private:
  struct Handle;
  Handle* handle_ = nullptr;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_LOOP_H_
