// BulkReceiver: takes the bulk messages of other members' BulkSenders of the same purpose.
//
// One thread of its own, from Open to the destructor; signals are blocked in it. It accepts connections, lets them prove who they are, and takes
// one message after the other, whole: while a payload arrives the other connections wait in the kernel.
//
// Memory: one buffer of max_payload_bytes, unless `place` gives the room, and the sockets'. Back-pressure is TCP's.
// Waits: a stranger has 5 s to prove itself; a payload that has begun may stand still for stall_bound. Between two messages a connection may be
// silent for ever: whether its member is alive is the fabric's business (runtime/control/fabric.h), which ends the wait by the breaker.
#ifndef CAIRN_RUNTIME_BULK_RECEIVER_H_
#define CAIRN_RUNTIME_BULK_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "planner/base/status.h"
#include "runtime/bulk/breaker.h"
#include "runtime/bulk/identity.h"
#include "runtime/bulk/message.h"
#include "runtime/control/socket.h"
#include "runtime/io/fd.h"

namespace cairn {

// All on the receiver's thread. They may block; they must not destroy the receiver.
struct BulkEvents {
  // Where the payload of a message goes: exactly `bytes` of room, or none. An error closes the connection. Where it gives none, or is left
  // empty: the receiver's own buffer.
  std::function<Result<std::span<std::byte>>(int from, const BulkSubject& subject, uint32_t bytes)> place;
  // A message has arrived and its checksum holds; `payload` lies where `place` said, else is valid during the call. An error closes the
  // connection.
  std::function<Status(int from, const BulkSubject& subject, std::span<const std::byte> payload,
                       const Hash128& hash)>
      take;
  // As `take`, of a message with which a descriptor came. Left empty: such a message is a broken one.
  std::function<Status(int from, const BulkSubject& subject, std::span<const std::byte> payload,
                       UniqueFd descriptor)>
      take_shared;
  // A connection of `from` ended in the middle of a message, with a broken one (kInvalid), or since `place` or `take` refused. A connection
  // that ends between two messages says nothing: its sender may open another one.
  std::function<void(int from, const Status& why)> lost;
  // Somebody who does not belong here was turned away; for the log.
  std::function<void(const std::string& line)> refused;
};

class BulkReceiver {
 public:
  // Listens and starts. max_payload_bytes: a longer message is a broken one.
  static Result<std::unique_ptr<BulkReceiver>> Open(const BulkIdentity& self, uint32_t max_payload_bytes,
                                                    std::shared_ptr<Breaker> breaker, BulkEvents events);
  // This receiver is done: waits for its thread, and closes all connections. The breaker stays as it is.
  ~BulkReceiver();
  BulkReceiver(const BulkReceiver&) = delete;
  BulkReceiver& operator=(const BulkReceiver&) = delete;

  // Where this receiver is reached: a Unix socket for members of this node, then TCP.
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  struct Guest;
  BulkReceiver(const BulkIdentity& self, uint32_t max_payload_bytes, std::shared_ptr<Breaker> breaker,
               BulkEvents events);
  void Main();
  bool Accept(const Socket& listener);  // false: there are no descriptors left
  Status Greet(Guest& guest);           // the handshake goes on
  Status Receive(Guest& guest);  // what has come of the next message; all of it once its header is there
  void Refuse(const std::string& why);  // said once

  // Constant after Open.
  std::shared_ptr<Breaker> done_;  // ends what this receiver waits for; a part of breaker_
  const BulkIdentity self_;
  const uint32_t max_payload_bytes_;
  const std::shared_ptr<Breaker> breaker_;
  const BulkEvents events_;
  std::vector<Socket> listeners_;
  std::vector<std::string> addresses_;

  // The thread's.
  std::list<std::unique_ptr<Guest>> guests_;
  std::unique_ptr<std::byte[]> buffer_;
  bool refused_ = false;

  std::thread thread_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_RECEIVER_H_
