// In place of runtime/io/write_engine.cc in a libcairn.so of the tests: engines that tell preload/fault.c of each block that is submitted
// and of each that is complete, since what io_uring does goes past libc.
#include "runtime/io/write_engine.h"

#include <map>
#include <utility>

#include "runtime/io/pwrite_engine.h"
#include "runtime/io/uring_engine.h"

// Of preload/fault.c, which may not be there. `call`: "submit", "complete". Leave takes what Enter gave.
extern "C" {
__attribute__((weak)) int cairn_fault_enter(const char* call, int fd);
__attribute__((weak)) void cairn_fault_leave(int action);
}

namespace cairn {
namespace {

class WatchedEngine : public WriteEngine {
 public:
  explicit WatchedEngine(std::unique_ptr<WriteEngine> engine) : engine_(std::move(engine)) {}

  std::string_view name() const override { return engine_->name(); }
  int depth() const override { return engine_->depth(); }
  int in_flight() const override { return engine_->in_flight(); }

  void Submit(const BlockWrite& block) override {
    files_[block.tag] = block.fd;
    At("submit", block.fd, [&] { engine_->Submit(block); });
  }
  BlockDone Wait() override { return Complete(engine_->Wait()); }
  std::optional<BlockDone> Poll() override {
    auto done = engine_->Poll();
    return done ? Complete(*done) : done;
  }

 private:
  template <typename Work>
  static void At(const char* call, int fd, const Work& work) {
    const int action = cairn_fault_enter != nullptr ? cairn_fault_enter(call, fd) : 0;
    work();
    if (cairn_fault_leave != nullptr) cairn_fault_leave(action);
  }
  BlockDone Complete(const BlockDone& done) {
    At("complete", files_[done.tag], [] {});
    return done;
  }

  const std::unique_ptr<WriteEngine> engine_;
  std::map<uint64_t, int> files_;  // by tag
};

}  // namespace

std::unique_ptr<WriteEngine> MakeWriteEngine(Writer writer) {
  if (writer != Writer::kPwrite) {
    if (auto engine = MakeUringEngine(); engine.ok())
      return std::make_unique<WatchedEngine>(*std::move(engine));
  }
  return std::make_unique<WatchedEngine>(MakePwriteEngine());
}

}  // namespace cairn
