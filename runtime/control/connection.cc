#include "runtime/control/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace cairn {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
constexpr int kReadsPerWakeup = 8;  // so that one busy peer does not starve the others

}  // namespace

Connection::Connection(Loop* loop, Socket socket, Side side, Handshake handshake, ConnectionEvents events)
    : socket_(std::move(socket)), handshake_(std::move(handshake)), side_(side), events_(std::move(events)) {
  watcher_ = std::make_unique<FdWatcher>(loop, socket_.fd(), [this](bool r, bool w) { Ready(r, w); });
  if (side_ == Side::kClient) queue_.push_back(handshake_.Start());
  watcher_->Watch(true, !queue_.empty());
}

Connection::~Connection() { *alive_ = false; }

void Connection::Send(uint16_t type, std::string_view payload) {
  if (encoder_ && watcher_) Queue(encoder_->Encode(type, payload));
}

void Connection::OnFlushed(std::function<void()> fn) {
  flushed_ = std::move(fn);
  if (watcher_) watcher_->Watch(true, true);
}

void Connection::Queue(std::string bytes) {
  if (bytes.empty()) return;
  queue_.push_back(std::move(bytes));
  watcher_->Watch(true, true);
}

void Connection::Ready(bool readable, bool writable) {
  const auto alive = alive_;
  if (writable) Write();
  if (*alive && readable && watcher_) Read();
}

void Connection::Write() {
  while (!queue_.empty()) {
    const std::string& front = queue_.front();
    const ssize_t n = send(socket_.fd(), front.data() + written_, front.size() - written_, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)) return;
    if (n < 0) return Close(Status(Code::kUnavailable, Status::FromErrno(errno, "write").message()));
    written_ += static_cast<size_t>(n);
    if (written_ < front.size()) return;
    queue_.pop_front();
    written_ = 0;
  }
  watcher_->Watch(true, false);
  if (flushed_) std::exchange(flushed_, nullptr)();
}

void Connection::Read() {
  thread_local std::vector<char> buffer(kReadBytes);
  const auto alive = alive_;
  for (int i = 0; i < kReadsPerWakeup; ++i) {
    const ssize_t n = recv(socket_.fd(), buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)) return;
    if (n < 0) return Close(Status(Code::kUnavailable, Status::FromErrno(errno, "read").message()));
    if (n == 0) {
      if (handshake_.done()) return Close(Status(Code::kUnavailable, "the connection was closed"));
      return Close(Status(Code::kPermission, "the connection was closed during the handshake"));
    }
    heard_ = true;
    Take({buffer.data(), static_cast<size_t>(n)});
    if (!*alive || !watcher_ || static_cast<size_t>(n) < buffer.size()) return;
  }
}

void Connection::Take(std::string_view bytes) {
  const auto alive = alive_;
  std::string rest;
  if (!handshake_.done()) {
    auto answer = handshake_.Feed(bytes);
    if (!answer.ok()) return Close(answer.status());
    Queue(*std::move(answer));
    if (!handshake_.done()) return;
    encoder_.emplace(handshake_.send_key());
    decoder_.emplace(handshake_.receive_key());
    rest = handshake_.TakeRest();
    bytes = rest;
    if (const auto on_open = events_.on_open) on_open();
    if (!*alive || !watcher_) return;
  }
  std::vector<Frame> frames;
  const Status status = decoder_->Feed(bytes, &frames);
  for (Frame& frame : frames) {
    if (const auto on_frame = events_.on_frame) on_frame(frame.type, std::move(frame.payload));
    if (!*alive || !watcher_) return;
  }
  if (!status.ok()) Close(status);
}

void Connection::Close(Status why) {
  watcher_.reset();
  socket_ = Socket();
  queue_.clear();
  if (const auto on_close = std::move(events_.on_close)) on_close(why);
}

}  // namespace cairn
