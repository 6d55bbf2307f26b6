// BulkStream: a connected socket whose reads and writes wait, each with a bound and until a Breaker breaks. One thread at a time.
#ifndef CAIRN_RUNTIME_BULK_STREAM_H_
#define CAIRN_RUNTIME_BULK_STREAM_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/bulk/breaker.h"
#include "runtime/control/socket.h"
#include "runtime/io/fd.h"

namespace cairn {

class BulkStream {
 public:
  // `stall_bound`: for how long no byte may move.
  BulkStream(Socket socket, std::shared_ptr<const Breaker> breaker, std::chrono::milliseconds stall_bound)
      : socket_(std::move(socket)), breaker_(std::move(breaker)), stall_bound_(stall_bound) {}

  // All of it, or: kUnavailable, the other end closed or reset the connection; kTimeout, nothing moved; the breaker's reason.
  Status Read(std::span<std::byte> out);
  // `descriptor`, unless -1, goes along with the first byte: Unix sockets alone.
  Status Write(std::string_view head, std::span<const std::byte> body, int descriptor = -1);

  // At most out.size() bytes, at least one; errors as Read. A descriptor that came along is kept in `descriptor` where there is one, else closed;
  // kUnavailable when it could not be taken, or more than one came: none of them stays open then.
  Result<size_t> ReadSome(std::span<std::byte> out, UniqueFd* descriptor = nullptr);

  void set_stall_bound(std::chrono::milliseconds bound) { stall_bound_ = bound; }
  int fd() const { return socket_.fd(); }

 private:
  Status Await(short events);

  Socket socket_;
  std::shared_ptr<const Breaker> breaker_;
  std::chrono::milliseconds stall_bound_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_STREAM_H_
