#include "runtime/io/pwrite_engine.h"

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/io/thread.h"

namespace cairn {
namespace {

BlockDone Write(const BlockWrite& block) {
  size_t written = 0;
  while (written < block.bytes.size()) {
    const ssize_t n = pwrite(block.fd, block.bytes.data() + written, block.bytes.size() - written,
                             static_cast<off_t>(block.offset + written));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return {block.tag, n < 0 ? errno : EIO};
    written += static_cast<size_t>(n);
  }
  return {block.tag, 0};
}

class PwriteEngine : public WriteEngine {
 public:
  explicit PwriteEngine(int threads) {
    try {
      for (int i = 0; i < threads; ++i) threads_.push_back(StartThread("cairn-writer", [this] { Main(); }));
    } catch (const std::system_error&) {
      // As many as there are.
    }
  }

  ~PwriteEngine() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::string_view name() const override { return "pwrite"; }
  // Twice the threads: each finds its next block when it has written one.
  int depth() const override { return threads_.empty() ? 1 : 2 * static_cast<int>(threads_.size()); }
  int in_flight() const override { return in_flight_; }

  void Submit(const BlockWrite& block) override {
    ++in_flight_;
    const BlockDone done = threads_.empty() ? Write(block) : BlockDone{};
    {
      const std::lock_guard lock(mutex_);
      threads_.empty() ? done_.push_back(done) : todo_.push_back(block);
    }
    wanted_.notify_one();
  }

  BlockDone Wait() override {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return !done_.empty(); });
    return Take();
  }

  std::optional<BlockDone> Poll() override {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return std::nullopt;
    return Take();
  }

 private:
  BlockDone Take() {
    const BlockDone done = done_.front();
    done_.pop_front();
    --in_flight_;
    return done;
  }

  void Main() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [this] { return ending_ || !todo_.empty(); });
      if (todo_.empty()) return;
      const BlockWrite block = todo_.front();
      todo_.pop_front();
      lock.unlock();
      const BlockDone done = Write(block);
      lock.lock();
      done_.push_back(done);
      finished_.notify_one();
    }
  }

  std::vector<std::thread> threads_;  // constant after construction
  int in_flight_ = 0;                 // the caller's

  std::mutex mutex_;
  std::condition_variable wanted_, finished_;
  std::deque<BlockWrite> todo_;  // guarded by mutex_
  std::deque<BlockDone> done_;   // guarded by mutex_
  bool ending_ = false;          // guarded by mutex_
};

}  // namespace

std::unique_ptr<WriteEngine> MakePwriteEngine(int threads) { return std::make_unique<PwriteEngine>(threads); }

}  // namespace cairn
