// The messages of the agreement: what a member and the leader say to each other, and how it looks on the wire.
//
// runtime/agreement/leader.h holds the protocol. A link between a member and the leader delivers in order and at most once; nothing is
// assumed about the order across links. Durations travel, never points in time: clocks of two hosts are not compared.
//
// Encode cannot fail. Decode takes any bytes and gives kInvalid for what Encode cannot have made: an unknown type, an enumerator out of
// range, a negative count or duration, missing or surplus bytes. Pure functions, any thread.
#ifndef CAIRN_RUNTIME_AGREEMENT_MESSAGES_H_
#define CAIRN_RUNTIME_AGREEMENT_MESSAGES_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "planner/base/status.h"
#include "runtime/settings.h"

namespace cairn::agreement {

using TimePoint = std::chrono::steady_clock::time_point;
using Rank = uint32_t;    // of a member, 0 … members - 1
using SaveId = uint64_t;  // one try at a save in this life, from 1; 0 = none. Never used twice

inline constexpr Nanoseconds kNoLimit = Nanoseconds::max();

enum class Mode : uint8_t {
  kRunning,  // its count may move at any moment
  kQuiet,    // between cairn_quiet_begin and cairn_quiet_end: state and count stand still
  kFinal,    // in cairn_finalize: state and count stand still for good, and stand for every later boundary
};

// ---- member to leader ----

// A save is wanted. Answered by exactly one Answer.
struct Request {
  Trigger reason = kTriggerRequest;
  Nanoseconds time_left = kNoLimit;  // until the save must be durable
  std::string tag;                   // "" = none
  bool operator==(const Request&) const = default;
};
// Answers Poll; sent again for the same id when the mode changes while the member is armed.
struct Count {
  SaveId id = 0;
  int64_t count = 0;     // of cairn_step calls
  Nanoseconds period{};  // between two of them lately; 0 = not known
  Mode mode = Mode::kRunning;
  bool operator==(const Count&) const = default;
};
// Armed: this member will not pass the boundary without snapshot or Abort.
struct Ack {
  SaveId id = 0;
  bool operator==(const Ack&) const = default;
};
// The boundary was passed already.
struct Nack {
  SaveId id = 0;
  int64_t count = 0;
  bool operator==(const Nack&) const = default;
};
// The member has left the boundary without a snapshot.
struct Abort {
  SaveId id = 0;
  bool operator==(const Abort&) const = default;
};
// The snapshot is complete in the local tier.
struct Staged {
  SaveId id = 0;
  int64_t boundary = 0;  // the T that it was taken for
  int64_t label = 0;     // the program's own step number
  bool final = false;    // taken in cairn_finalize, so the label may differ from the others'
  bool operator==(const Staged&) const = default;
};
// The member's files are durable. The record is opaque here; the leader puts it into the manifest.
struct Record {
  SaveId id = 0;
  std::string record;
  bool operator==(const Record&) const = default;
};
// Snapshot or drain failed.
struct Failed {
  SaveId id = 0;
  std::string why;
  bool operator==(const Failed&) const = default;
};
// The program called cairn_finalize. Sent once.
struct Finalized {
  int64_t count = 0;
  bool stateless = false;  // its state is gone: there is nothing to save at the end
  bool operator==(const Finalized&) const = default;
};

// The program called cairn_wait: answered by Synced once every member has and no save is under way or wanted.
struct Sync {
  bool operator==(const Sync&) const = default;
};

using ToLeader = std::variant<Request, Count, Ack, Nack, Abort, Staged, Record, Failed, Finalized, Sync>;

// ---- leader to member ----

struct Poll {
  SaveId id = 0;
  bool operator==(const Poll&) const = default;
};
struct ArmAt {
  SaveId id = 0;
  int64_t boundary = 0;              // T
  Nanoseconds time_left = kNoLimit;  // until the save is given up
  bool operator==(const ArmAt&) const = default;
};
struct Go {
  SaveId id = 0;
  bool operator==(const Go&) const = default;
};
// Every member has staged and the attempt's directory exists: write into it.
struct Drain {
  SaveId id = 0;
  std::string attempt;  // its name, as the leader's session gave it
  bool operator==(const Drain&) const = default;
};
struct Committed {
  SaveId id = 0;
  bool operator==(const Committed&) const = default;
};
// This id will not be committed: disarm, leave the boundary, forget it.
struct Drop {
  SaveId id = 0;
  bool all_staged = false;  // every member had staged: the images are a complete set
  std::string why;
  bool operator==(const Drop&) const = default;
};
// The save that served a Request has ended.
struct Answer {
  bool saved = false;
  std::string why;  // when not saved
  bool operator==(const Answer&) const = default;
};
// No more saves in this life: cairn_finalize returns.
struct Close {
  bool finished = false;  // all finalized, the last state is durable and the run recorded as finished
  std::string why;        // when not finished; "" = not to be saved at the end, as the user set it
  bool operator==(const Close&) const = default;
};

// Answers Sync: everything that was asked for before has ended.
struct Synced {
  bool operator==(const Synced&) const = default;
};

using ToMember = std::variant<Poll, ArmAt, Go, Drain, Committed, Drop, Answer, Close, Synced>;

std::string Encode(const ToLeader& message);
std::string Encode(const ToMember& message);
Result<ToLeader> DecodeToLeader(std::string_view bytes);
Result<ToMember> DecodeToMember(std::string_view bytes);

}  // namespace cairn::agreement

#endif  // CAIRN_RUNTIME_AGREEMENT_MESSAGES_H_
