// The messages between a session's leader and the host process, as values. On the wire: a frame of the named
// type whose payload is CBOR.
//
// The leader sends them with Fabric::SendToHost and receives them in on_host. Every query has an id that the
// answer repeats; the host answers each one within its bound, with `unknown` where Slurm does not answer.
// Decode: kInvalid for anything that is not such a message.
#ifndef CAIRN_RUNTIME_HOST_HOST_PROTOCOL_H_
#define CAIRN_RUNTIME_HOST_HOST_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/slurm/cause.h"

namespace cairn {

// Frame types on a connection to the host process. 1 to 15 are the rendezvous' own
// (runtime/control/rendezvous.h).
enum HostMessage : uint16_t {
  kHostCauseQuery = 16,
  kHostCauseReply = 17,
  kHostHolderQuery = 18,
  kHostHolderReply = 19,
  kHostRequeueQuery = 20,
  kHostRequeueReply = 21,
  kHostSaved = 22,
  kHostControlRequest = 23,
  kHostControlReply = 24,
  kHostLeft = 25,
  kHostCopyState = 26,
};

// Leader → host: why are we signalled, and until when have we got? At start and once per trigger. Answered
// within 2 s.
struct CauseQuery {
  static constexpr uint16_t kType = kHostCauseQuery;
  uint64_t id = 0;
  int64_t notice_ms = 0;  // lead of the deadline watch: EndTime within it counts as the time limit
};
struct CauseReply {
  static constexpr uint16_t kType = kHostCauseReply;
  uint64_t id = 0;
  Cause cause = Cause::kUnknown;
  std::optional<int64_t>
      seconds_left;  // until the deadline, counted from the answer; clocks of two hosts are never compared
  bool may_requeue = false;
  bool batch = false;  // a batch job: `after=auto` means requeue
  // What a preemption leaves from its SIGTERM to the kill: the partition's GraceTime, or KillWait without one; nothing = not known.
  std::optional<int64_t> warning_seconds;
  std::string why;
  bool answered = true;  // false: Slurm did not answer, so asking again may tell more
};

// Leader → host: is the life that claimed an epoch still there?
struct HolderQuery {
  static constexpr uint16_t kType = kHostHolderQuery;
  uint64_t id = 0;
  uint32_t job = 0;
  uint32_t step = 0;
  int restart = 0;
};
enum class Alive : uint8_t { kUnknown, kYes, kNo };
struct HolderReply {
  static constexpr uint16_t kType = kHostHolderReply;
  uint64_t id = 0;
  Alive alive = Alive::kUnknown;
  std::string why;
};

// Leader → host: the final save is durable and the cause allows it: requeue this job
// (runtime/slurm/requeue.h).
struct RequeueQuery {
  static constexpr uint16_t kType = kHostRequeueQuery;
  uint64_t id = 0;
};
struct RequeueReply {
  static constexpr uint16_t kType = kHostRequeueReply;
  uint64_t id = 0;
  bool requeued = false;
  std::string text;  // for the user
};

// Leader → host: the run's newest durable checkpoint is of this step, after each commit and the restore of one of its own. No answer.
struct Saved {
  static constexpr uint16_t kType = kHostSaved;
  std::string dir;
  std::string session;
  int64_t step = 0;
};

// Leader → host: this life ends in good order. No answer. A host whose step ends without it tells the user how to resume.
struct Left {
  static constexpr uint16_t kType = kHostLeft;
  std::string session;
};

// Host → leader, whenever it changes: how the copies of --checkpoint-copy stand. No answer.
struct CopyState {
  static constexpr uint16_t kType = kHostCopyState;
  std::optional<int64_t> step;       // of the newest checkpoint that this life knows to be there
  uint64_t bytes = 0;                // of it
  std::optional<int64_t> under_way;  // step of the one that is being copied
  std::string failure;               // why the last try failed; "" = it did not
};

// Host → leader: a request of the `cairn` command. Leader → host: a reply to it; there may be several. The bodies are the session's and the
// command's business.
struct ControlRequest {
  static constexpr uint16_t kType = kHostControlRequest;
  uint64_t id = 0;
  std::string body;
};
struct ControlReply {
  static constexpr uint16_t kType = kHostControlReply;
  uint64_t id = 0;
  std::string body;
};

// EncodeHostMessage(m) → the payload; the frame's type is T::kType. DecodeHostMessage<T>(payload).
template <typename T>
std::string EncodeHostMessage(const T& message);
template <typename T>
Result<T> DecodeHostMessage(std::string_view payload);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_HOST_PROTOCOL_H_
