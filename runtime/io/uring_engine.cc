#include "runtime/io/uring_engine.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "runtime/io/fork_guard.h"

namespace cairn {
namespace {

// The kernel cuts longer writes anyway, and a request holds 32 bits.
constexpr size_t kMaxWriteBytes = size_t{1} << 30;

// When the kernel has no memory for a request just now.
void WaitForTheKernel() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

bool MayPass(int error) { return error == EINTR || error == EAGAIN || error == EBUSY; }

class UringEngine : public WriteEngine {
 public:
  // Uses all that is used later, so that a kernel that refuses any of it does so here.
  Status Open(int depth) {
    if (const int result = io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0); result < 0)
      return Status::FromErrno(-result, "io_uring_setup");
    open_ = true;
    ForkGuard::Own(ring_.ring_fd);
    if (const int result = io_uring_ring_dontfork(&ring_); result < 0)
      return Status::FromErrno(-result, "madvise(DONTFORK) of the rings of io_uring");
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
    const bool can_write = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_WRITE);
    if (probe != nullptr) io_uring_free_probe(probe);
    if (!can_write) return Status::FromErrno(ENOSYS, "io_uring without writes");
    io_uring_prep_nop(io_uring_get_sqe(&ring_));
    io_uring_cqe* done = nullptr;
    int result = io_uring_submit(&ring_);
    if (result >= 0) result = io_uring_wait_cqe(&ring_, &done);
    if (result < 0) return Status::FromErrno(-result, "io_uring_enter");
    io_uring_cqe_seen(&ring_, done);
    blocks_.resize(static_cast<size_t>(depth));
    for (size_t place = 0; place < blocks_.size(); ++place) free_.push_back(place);
    return OkStatus();
  }

  ~UringEngine() override {
    while (in_flight() > 0) Wait();
    if (!open_) return;
    ForkGuard::Disown(ring_.ring_fd);
    io_uring_queue_exit(&ring_);
  }

  std::string_view name() const override { return "io_uring"; }
  int depth() const override { return static_cast<int>(blocks_.size()); }
  int in_flight() const override { return static_cast<int>(blocks_.size() - free_.size()); }

  void Submit(const BlockWrite& block) override {
    const size_t place = free_.back();
    free_.pop_back();
    blocks_[place] = {block, 0};
    Send(place);
  }

  BlockDone Wait() override {
    for (;;) {
      if (const auto done = Poll()) return *done;
      // Whatever it says, the result will appear in the ring; the kernel works on.
      io_uring_cqe* unused = nullptr;
      if (const int result = io_uring_wait_cqe(&ring_, &unused); result < 0 && result != -EINTR)
        WaitForTheKernel();
    }
  }

  std::optional<BlockDone> Poll() override {
    if (!refused_.empty()) {
      const size_t place = refused_.front();
      refused_.pop_front();
      return Finish(place, enter_error_);
    }
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const size_t place = io_uring_cqe_get_data64(cqe);
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      if (result < 0 && !MayPass(-result)) return Finish(place, -result);
      if (result == 0) return Finish(place, EIO);  // a file takes something, or says why not
      if (result > 0) blocks_[place].written += static_cast<size_t>(result);
      if (blocks_[place].written == blocks_[place].write.bytes.size()) return Finish(place, 0);
      Send(place);
    }
    return std::nullopt;
  }

 private:
  struct Block {
    BlockWrite write;
    size_t written = 0;
  };

  // What is left of a block. There is a request free: as many as places, and each is with the kernel at once.
  void Send(size_t place) {
    if (enter_error_ == 0) {
      const auto& [write, written] = blocks_[place];
      io_uring_sqe* const request = io_uring_get_sqe(&ring_);
      const size_t left = std::min(write.bytes.size() - written, kMaxWriteBytes);
      io_uring_prep_write(request, write.fd, write.bytes.data() + written, static_cast<unsigned>(left),
                          write.offset + written);
      io_uring_sqe_set_data64(request, place);
      int result = io_uring_submit(&ring_);
      while (result < 0 && MayPass(-result)) {
        WaitForTheKernel();
        result = io_uring_submit(&ring_);
      }
      if (result >= 0) return;
      // The request stays in the ring and must never be sent: nothing is any more.
      enter_error_ = -result;
    }
    refused_.push_back(place);
  }

  BlockDone Finish(size_t place, int error) {
    free_.push_back(place);
    return {blocks_[place].write.tag, error};
  }

  io_uring ring_{};
  bool open_ = false;
  std::vector<Block> blocks_;   // by place, which is what the kernel gives back
  std::vector<size_t> free_;    // places
  std::deque<size_t> refused_;  // places whose request the kernel did not take,
  int enter_error_ = 0;         // for this reason
};

}  // namespace

Result<std::unique_ptr<WriteEngine>> MakeUringEngine(int depth) {
  auto engine = std::make_unique<UringEngine>();
  CAIRN_RETURN_IF_ERROR(engine->Open(depth));
  return std::unique_ptr<WriteEngine>(std::move(engine));
}

Status CheckIoUring() { return MakeUringEngine(1).status(); }

}  // namespace cairn
