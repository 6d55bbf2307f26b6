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

namespace cairn {

class BulkStream {
 public:
  // `stall_bound`: for how long no byte may move.
  BulkStream(Socket socket, std::shared_ptr<const Breaker> breaker, std::chrono::milliseconds stall_bound)
      : socket_(std::move(socket)), breaker_(std::move(breaker)), stall_bound_(stall_bound) {}

  // All of it, or: kUnavailable, the other end closed or reset the connection; kTimeout, nothing moved; the breaker's reason.
  Status Read(std::span<std::byte> out);
  Status Write(std::string_view head, std::span<const std::byte> body);

  // At most out.size() bytes, at least one; errors as Read.
  Result<size_t> ReadSome(std::span<std::byte> out);

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
