// Connection: one authenticated stream: a socket, the handshake, then frames. Loop thread only.
#ifndef CAIRN_RUNTIME_CONTROL_CONNECTION_H_
#define CAIRN_RUNTIME_CONTROL_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/control/frame.h"
#include "runtime/control/handshake.h"
#include "runtime/control/loop.h"
#include "runtime/control/socket.h"

namespace cairn {

// Any of them may destroy the connection.
struct ConnectionEvents {
  std::function<void()> on_open;  // the peer is who it must be
  std::function<void(uint16_t type, std::string payload)> on_frame;
  // Once, also when the handshake fails; nothing follows. kUnavailable: the stream ended or was reset. kPermission: the handshake refused the
  // peer, or the peer us. kInvalid: it broke the protocol.
  std::function<void(const Status& why)> on_close;
};

class Connection {
 public:
  // A client that is connecting (StartConnect), or an accepted server's side.
  enum class Side : uint8_t { kClient, kServer };
  Connection(Loop* loop, Socket socket, Side side, Handshake handshake, ConnectionEvents events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // For whoever takes a connection over in on_open: frames that came behind the handshake go to the new events.
  void SetEvents(ConnectionEvents events) { events_ = std::move(events); }

  // Queues a frame; once open, until closed. Without effect otherwise.
  void Send(uint16_t type, std::string_view payload);

  // Calls `fn` once all that was queued so far is with the kernel.
  void OnFlushed(std::function<void()> fn);

  // Whether bytes came since the last call.
  bool TakeHeard() { return std::exchange(heard_, false); }

  const Handshake& handshake() const { return handshake_; }

 private:
  void Ready(bool readable, bool writable);
  void Write();
  void Read();
  void Take(std::string_view bytes);
  void Close(Status why);
  void Queue(std::string bytes);

  Socket socket_;
  Handshake handshake_;
  const Side side_;
  ConnectionEvents events_;
  std::unique_ptr<FdWatcher> watcher_;
  std::optional<FrameEncoder> encoder_;
  std::optional<FrameDecoder> decoder_;
  std::deque<std::string> queue_;
  size_t written_ = 0;  // bytes of queue_.front() that are with the kernel
  std::function<void()> flushed_;
  bool heard_ = false;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // false once destroyed: seen by a frame of Read that called out
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_CONNECTION_H_
