#include "runtime/host/registry_writer.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/host/registry.h"

namespace cairn {
namespace {

constexpr std::chrono::seconds kLastLinesBound{2};

}  // namespace

struct RegistryWriter::State {
  // Constant after construction.
  std::string path;
  StepIdentity step;
  std::string dir;

  std::mutex mutex;
  // Guarded by mutex.
  std::condition_variable changed;
  std::deque<std::pair<std::string, int64_t>> lines;  // event, saved step
  bool closing = false;
  bool ended = false;
};

RegistryWriter::RegistryWriter(std::string path, StepIdentity step, std::string dir)
    : state_(std::make_shared<State>()) {
  state_->path = std::move(path);
  state_->step = std::move(step);
  state_->dir = std::move(dir);
  std::thread([state = state_] { Main(state.get()); }).detach();
}

RegistryWriter::~RegistryWriter() {
  std::unique_lock lock(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kLastLinesBound, [this] { return state_->ended; });
}

void RegistryWriter::Append(const std::string& event, int64_t saved_step) {
  const std::lock_guard lock(state_->mutex);
  state_->lines.emplace_back(event, saved_step);
  state_->changed.notify_all();
}

void RegistryWriter::Main(State* state) {
  std::unique_lock lock(state->mutex);
  bool failed = state->path.empty();
  for (;;) {
    state->changed.wait(lock, [&] { return state->closing || !state->lines.empty(); });
    if (state->lines.empty()) break;
    const auto [event, saved_step] = state->lines.front();
    state->lines.pop_front();
    if (failed) continue;
    lock.unlock();
    const Status status = AppendToRegistry(state->path, event, state->step, state->dir, saved_step);
    if (!status.ok())
      std::fprintf(stderr, "cairn: `cairn runs` will not know this run: %s\n", status.message().c_str());
    failed = !status.ok();
    lock.lock();
  }
  state->ended = true;
  state->changed.notify_all();
}

}  // namespace cairn
