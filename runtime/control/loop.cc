#include "runtime/control/loop.h"

#include <uv.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/io/fork_guard.h"
#include "runtime/io/thread.h"

namespace cairn {

// Constant after Start: generation, thread. Guarded by mutex: queue, stopping. Loop thread only: uv, async.
struct Loop::Impl {
  uv_loop_t uv;
  uv_async_t async;
  std::thread thread;
  std::thread::id id;
  uint64_t generation = ForkGuard::Generation();
  std::mutex mutex;
  std::vector<std::function<void()>> queue;
  bool stopping = false;

  bool InForkedChild() const { return generation != ForkGuard::Generation(); }

  void Drain() {
    std::vector<std::function<void()>> batch;
    {
      std::lock_guard lock(mutex);
      batch.swap(queue);
    }
    for (auto& fn : batch) fn();
    std::lock_guard lock(mutex);
    if (!queue.empty()) {
      uv_async_send(&async);  // after the descriptors and timers had their turn
      return;
    }
    if (stopping && !uv_is_closing(reinterpret_cast<uv_handle_t*>(&async))) {
      uv_close(reinterpret_cast<uv_handle_t*>(&async), nullptr);
    }
  }

  // libuv's own descriptors. A forked child must not keep them: they would share the parent's epoll set.
  template <typename Fn>
  void EachDescriptor(Fn fn) {
    fn(uv.backend_fd);
    fn(uv.async_io_watcher.fd);
    fn(uv.signal_pipefd[0]);
    fn(uv.signal_pipefd[1]);
  }
};

Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Loop>> Loop::Start(const std::string& name) {
  auto impl = std::make_unique<Impl>();
  if (const int error = uv_loop_init(&impl->uv); error != 0) {
    return Status::FromErrno(-error, "start the control loop");
  }
  Impl* raw = impl.get();
  impl->async.data = raw;
  const int error =
      uv_async_init(&impl->uv, &impl->async, [](uv_async_t* a) { static_cast<Impl*>(a->data)->Drain(); });
  if (error != 0) {
    uv_loop_close(&impl->uv);
    return Status::FromErrno(-error, "start the control loop");
  }
  impl->EachDescriptor(ForkGuard::Own);

  try {
    impl->thread = StartThread(name, [raw] { uv_run(&raw->uv, UV_RUN_DEFAULT); });
  } catch (const std::system_error& e) {
    impl->EachDescriptor(ForkGuard::Disown);
    uv_close(reinterpret_cast<uv_handle_t*>(&impl->async), nullptr);
    uv_run(&impl->uv, UV_RUN_DEFAULT);
    uv_loop_close(&impl->uv);
    return Status::FromErrno(e.code().value(), "start the thread " + name);
  }
  impl->id = impl->thread.get_id();
  return std::unique_ptr<Loop>(new Loop(std::move(impl)));
}

Loop::~Loop() {
  if (impl_->InForkedChild()) {
    static_cast<void>(
        impl_.release());  // its thread does not exist here; a joinable std::thread must not be destroyed
    return;
  }
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  uv_async_send(&impl_->async);
  impl_->thread.join();
  impl_->EachDescriptor(ForkGuard::Disown);
  uv_loop_close(&impl_->uv);
}

void Loop::Post(std::function<void()> fn) {
  if (impl_->InForkedChild()) return;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->queue.push_back(std::move(fn));
  }
  uv_async_send(&impl_->async);
}

void Loop::Run(const std::function<void()>& fn) {
  if (impl_->InForkedChild()) return;
  if (OnLoopThread()) return fn();
  std::mutex mutex;
  std::condition_variable ran;
  bool done = false;
  Post([&] {
    fn();
    std::lock_guard lock(mutex);
    done = true;
    ran.notify_one();
  });
  std::unique_lock lock(mutex);
  ran.wait(lock, [&] { return done; });
}

bool Loop::OnLoopThread() const { return std::this_thread::get_id() == impl_->id; }

uv_loop_s* Loop::uv() { return &impl_->uv; }

// The handle outlives its owner until libuv has closed it: its callback may destroy the owner.
struct Timer::Handle {
  uv_timer_t timer;
  std::function<void()> fn;
};

Timer::Timer(Loop* loop, std::function<void()> fn) : handle_(new Handle{{}, std::move(fn)}) {
  uv_timer_init(loop->uv(), &handle_->timer);
  handle_->timer.data = handle_;
}

Timer::~Timer() {
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->timer),
           [](uv_handle_t* h) { delete static_cast<Handle*>(h->data); });
}

void Timer::Once(std::chrono::milliseconds delay) {
  uv_update_time(handle_->timer.loop);
  uv_timer_start(
      &handle_->timer, [](uv_timer_t* t) { static_cast<Handle*>(t->data)->fn(); },
      static_cast<uint64_t>(std::max<int64_t>(delay.count(), 0)), 0);
}

void Timer::Every(std::chrono::milliseconds interval) {
  uv_update_time(handle_->timer.loop);
  const auto ms = static_cast<uint64_t>(std::max<int64_t>(interval.count(), 1));
  uv_timer_start(
      &handle_->timer, [](uv_timer_t* t) { static_cast<Handle*>(t->data)->fn(); }, ms, ms);
}

void Timer::Stop() { uv_timer_stop(&handle_->timer); }

struct FdWatcher::Handle {
  uv_poll_t poll;
  Callback fn;
};

FdWatcher::FdWatcher(Loop* loop, int fd, Callback fn) {
  auto handle = std::make_unique<Handle>(Handle{{}, std::move(fn)});
  if (uv_poll_init(loop->uv(), &handle->poll, fd) != 0) return;
  handle_ = handle.release();
  handle_->poll.data = handle_;
}

FdWatcher::~FdWatcher() {
  if (handle_ == nullptr) return;
  uv_poll_stop(&handle_->poll);
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->poll),
           [](uv_handle_t* h) { delete static_cast<Handle*>(h->data); });
}

void FdWatcher::Watch(bool read, bool write) {
  if (handle_ == nullptr) return;
  const int events = (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0);
  if (events == 0) {
    uv_poll_stop(&handle_->poll);
    return;
  }
  uv_poll_start(&handle_->poll, events, [](uv_poll_t* p, int status, int ready) {
    if (status < 0) ready = UV_READABLE | UV_WRITABLE;
    static_cast<Handle*>(p->data)->fn((ready & UV_READABLE) != 0, (ready & UV_WRITABLE) != 0);
  });
}

}  // namespace cairn
