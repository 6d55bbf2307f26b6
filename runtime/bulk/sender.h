// BulkSender: sends bulk messages to other members' BulkReceivers of the same purpose.
//
// It has no thread: a message goes out on the thread that sends it. A connection is opened with the first message to a rank, on addresses that
// `locate` finds, and stays; at most kMaxConnections are open at a time, the one that was idle longest gives way.
//
// Waits. Each is bounded: connecting and the handshake by connect_bound, writing by stall_bound without a byte moved, locate by itself; and
// each ends at once when the breaker breaks.
// Memory: none of its own but the sockets'. Back-pressure is TCP's: Send returns when the kernel has taken all bytes.
#ifndef CAIRN_RUNTIME_BULK_SENDER_H_
#define CAIRN_RUNTIME_BULK_SENDER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/bulk/breaker.h"
#include "runtime/bulk/identity.h"
#include "runtime/bulk/message.h"

namespace cairn {

class BulkSender {
 public:
  static constexpr size_t kMaxConnections = 64;
  static constexpr std::chrono::milliseconds kConnectBound{20000};

  // The addresses of a rank's receiver, in the order of trial (BulkReceiver::addresses() of it, as AddressBook brings them). May block; bounded;
  // any thread.
  using Locate = std::function<Result<std::vector<std::string>>(int rank)>;

  BulkSender(BulkIdentity self, Locate locate, std::shared_ptr<const Breaker> breaker);
  ~BulkSender();  // no Send may be under way. What the kernel has taken still arrives
  BulkSender(const BulkSender&) = delete;
  BulkSender& operator=(const BulkSender&) = delete;

  // Sends one message. Any thread; messages of one thread to one rank arrive in their order. `hash` saves hashing a payload whose
  // Hash128 is known. OK means that the kernel has it, not that it has arrived: a user that must know lets the receiver answer.
  // kUnavailable: nobody to connect to, or the connection was lost; kTimeout: the receiver takes nothing; kPermission: it is not who it
  // must be; the breaker's reason. The connection is closed after an error.
  // `descriptor`, unless -1, goes along: where Near.
  Status Send(int rank, const BulkSubject& subject, std::span<const std::byte> payload,
              const std::optional<Hash128>& hash = {}, int descriptor = -1);

  // Whether the rank is reached by a Unix socket, hence on this node. Connects where there is no connection; errors as Send.
  Result<bool> Near(int rank);

 private:
  struct Connection;
  std::shared_ptr<Connection> Use(int rank);
  Status With(int rank, const std::function<Status(Connection& connection)>& use);
  Status Connect(int rank, Connection& connection);
  Status Dial(int rank, const std::string& address, std::chrono::steady_clock::time_point deadline,
              Connection& connection);

  const BulkIdentity self_;
  const Locate locate_;
  const std::shared_ptr<const Breaker> breaker_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Connection>> connections_;  // guarded by mutex_
  uint64_t uses_ = 0;                                       // guarded by mutex_
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_SENDER_H_
