// Worker: one background thread that runs tasks in order. Drains and commits run here, off the loop and off the program's threads.
#ifndef CAIRN_RUNTIME_SESSION_WORKER_H_
#define CAIRN_RUNTIME_SESSION_WORKER_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace cairn {

class Worker {
 public:
  Worker();
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

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_WORKER_H_
