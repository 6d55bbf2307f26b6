#include "runtime/log/line_writer.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/io/fork_guard.h"
#include "runtime/io/thread.h"

namespace cairn {
namespace {

constexpr size_t kMostLines = 1000;
constexpr std::chrono::milliseconds kPatience{100};
constexpr std::chrono::seconds kLastLinesBound{1};

// What cannot be written is nobody's to know: there is no other place to tell it.
void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) return;
  }
}

}  // namespace

struct LineWriter::State {
  UniqueFd owned;
  int fd = -1;
  const uint64_t generation = ForkGuard::Generation();
  bool has_thread = false;  // constant after construction

  std::mutex mutex;
  // Guarded by mutex.
  std::condition_variable changed;
  std::deque<std::string> lines;  // the first is being written
  uint64_t taken = 0, written = 0;
  uint64_t lost = 0;  // since the last line that was taken
  bool slow = false;
  bool closing = false;
};

LineWriter::LineWriter(int fd) : state_(std::make_shared<State>()) {
  state_->fd = fd;
  try {
    StartThread("cairn-log", [state = state_] { Main(state.get()); }).detach();
    state_->has_thread = true;
  } catch (const std::system_error&) {
    // No thread is to be had: callers write themselves.
  }
}

LineWriter::LineWriter(UniqueFd fd) : LineWriter(fd.get()) { state_->owned = std::move(fd); }

LineWriter::~LineWriter() {
  if (state_->generation != ForkGuard::Generation()) return;
  std::unique_lock lock(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kLastLinesBound, [this] { return state_->written == state_->taken; });
}

void LineWriter::Write(std::string line) {
  if (state_->generation != ForkGuard::Generation()) return;
  std::unique_lock lock(state_->mutex);
  if (!state_->has_thread) return WriteAll(state_->fd, line);
  if (state_->lines.size() >= kMostLines) {
    ++state_->lost;
    return;
  }
  if (state_->lost > 0)
    line = "cairn: " + std::to_string(std::exchange(state_->lost, 0)) + " lines were lost here\n" + line;
  state_->lines.push_back(std::move(line));
  const uint64_t number = ++state_->taken;
  state_->changed.notify_all();
  if (!state_->slow)
    state_->slow = !state_->changed.wait_for(lock, kPatience, [&] { return state_->written >= number; });
}

void LineWriter::Main(State* state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->closing || !state->lines.empty(); });
    if (state->lines.empty()) return;
    const std::string& line = state->lines.front();  // stays where it is while others are added
    lock.unlock();
    WriteAll(state->fd, line);
    lock.lock();
    state->lines.pop_front();
    if (++state->written == state->taken) state->slow = false;
    state->changed.notify_all();
  }
}

}  // namespace cairn
