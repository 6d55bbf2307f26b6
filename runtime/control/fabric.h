// Fabric: the message tree of a session's members. The session talks to its members and to the host process through this alone.
//
//  1. Each member opens its listeners, connects to the host process and registers: rank, world size, node, endpoints. A rank that registers
//     twice, or with another world size, is refused.
//  2. Once all are registered, the host answers each with its parent: the lowest rank of a node leads it and is a child of rank 0 (over TCP),
//     the others are its children (over a Unix socket, same uid only). When some do not come within the open bound of the first one, the host
//     answers everybody with the missing ranks, and the session does not form.
//  3. A child connects to its parent. A node leader whose whole node is there says so to rank 0; when all are, rank 0 sends `ready` down the
//     tree. Only rank 0 keeps its connection to the host.
//  4. Every connection carries a heartbeat. Silence is counted in the listener's own ticks, so a process that was itself stopped blames
//     nobody. Silent for suspect_after = suspect; heard again = alive; silent for gone_after, or the connection ended without a `leaving` =
//     gone, for good. A member whose way to rank 0 is silent or gone is itself suspect or gone to rank 0, and rank 0 is to it.
//  5. Rank 0 tells every change to all members.
//
// Threads: everything on the loop's thread, constructor, destructor and callbacks included. A callback may not destroy the Fabric.
// Ownership: the loop outlives it. The destructor closes the connections without a word, which the others see as gone: call Leave first.
#ifndef CAIRN_RUNTIME_CONTROL_FABRIC_H_
#define CAIRN_RUNTIME_CONTROL_FABRIC_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/control/loop.h"
#include "runtime/control/secret.h"

namespace cairn {

enum class PeerState : uint8_t {
  kAlive,
  kSuspect,  // silent; may come back
  kGone,     // for good, without a word
  kLeft,     // for good, after Leave
};
std::string_view PeerStateName(PeerState state);  // "alive", …

struct FabricOptions {
  int rank = 0;
  int world_size = 1;
  std::string node;  // members with the same name share a machine
  std::string key;   // <job>.<step>.<restart count>
  std::string session = "main";
  Secret token;
  std::string rendezvous;  // "addr:port[,addr:port…]" of the host process; "" = none, for world_size 1 only
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds suspect_after{5000};
  std::chrono::milliseconds gone_after{30000};
  std::chrono::milliseconds open_bound{60000};
};

struct FabricCallbacks {
  // Once: OK when all members are connected; else why not ("waiting for ranks 3, 5"), and nothing can be
  // sent.
  std::function<void(Status)> on_ready;
  // A message of a member, this one included. Messages of one sender arrive in their order. Never before
  // on_ready(OK).
  std::function<void(int from, uint16_t type, std::string payload)> on_message;
  // A change of another member's state.
  std::function<void(int rank, PeerState state, const std::string& why)> on_peer;
  // Rank 0 only: a message of the host process (runtime/host/host_protocol.h).
  std::function<void(uint16_t type, std::string payload)> on_host;
  // A connection was refused for a reason not seen before; for the log.
  std::function<void(const std::string& line)> on_refused;
};

class Fabric {
 public:
  static constexpr size_t kMaxMessageBytes = size_t{64} << 20;

  // Starts connecting; every outcome is told by on_ready, which is never called from within the constructor.
  Fabric(Loop* loop, FabricOptions options, FabricCallbacks callbacks);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Queue a message. To oneself it comes back through the loop's queue. kUnavailable: not ready, or the
  // receiver (of Broadcast: somebody) is gone or has left; the others still get it. kInvalid: payload over
  // kMaxMessageBytes. OK does not mean received.
  Status SendTo(int rank, uint16_t type, std::string_view payload);
  Status SendToLeader(uint16_t type, std::string_view payload) { return SendTo(0, type, payload); }
  Status Broadcast(uint16_t type, std::string_view payload);  // rank 0 only; to all members, rank 0 included

  // Rank 0 only. kUnavailable: there is no host process (any more).
  Status SendToHost(uint16_t type, std::string_view payload);

  PeerState peer_state(int rank) const;

  // Says goodbye, and calls `done` (which may destroy the Fabric) once that is with the kernel or 1 s has passed. No other callback is called
  // any more, and nothing can be sent. A node leader's children lose their way to rank 0 with it: leave when the session is over.
  void Leave(std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_FABRIC_H_
