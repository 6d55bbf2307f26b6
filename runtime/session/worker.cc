#include "runtime/session/worker.h"

#include <future>
#include <memory>

#include "runtime/io/thread.h"
#include "runtime/thrown.h"

namespace cairn {

Worker::Worker(std::function<void(const Status& thrown)> broke)
    : broke_(std::move(broke)), thread_(StartThread("cairn-worker", [this] { Main(); })) {}

bool Worker::IsIdle(std::chrono::milliseconds bound) {
  auto reached = std::make_shared<std::promise<void>>();
  auto future = reached->get_future();
  Run([reached] { reached->set_value(); });
  return future.wait_for(bound) == std::future_status::ready;
}

void Worker::Join() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::Run(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (stop_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void Worker::Main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (...) {
      broke_(Thrown());
    }
    lock.lock();
  }
}

}  // namespace cairn
