// Worker: one background thread that runs tasks in order. Drains and commits run here, off the loop and off the program's threads.
// What a task throws (there is no memory, or no thread to be had) must not end the program: it is told, and the next task runs.
#ifndef CAIRN_RUNTIME_SESSION_WORKER_H_
#define CAIRN_RUNTIME_SESSION_WORKER_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "planner/base/status.h"

namespace cairn {

class Worker {
 public:
  explicit Worker(std::function<void(const Status& thrown)> broke);  // on the worker's thread
  ~Worker() { Join(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Run(std::function<void()> task);  // any thread

  // Not on the worker's own thread. Whether it has run what was queued before, waiting for at most `bound`.
  bool IsIdle(std::chrono::milliseconds bound);
  // Runs what is queued and ends the thread; later tasks are dropped.
  void Join();

 private:
  void Main();

  const std::function<void(const Status& thrown)> broke_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_WORKER_H_
