// DrainMeter: how far all members together have written the save under way, from what each says of itself now and then. Leader only. Pure.
#ifndef CAIRN_RUNTIME_SESSION_DRAIN_METER_H_
#define CAIRN_RUNTIME_SESSION_DRAIN_METER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/session/protocol.h"

namespace cairn {

class DrainMeter {
 public:
  struct Reading {
    int ranks = 0;  // that have said anything
    uint64_t bytes = 0;
    uint64_t written = 0;
    double bytes_per_second = 0;  // of all that still write, at their present pace
    std::optional<std::chrono::nanoseconds> left =
        {};              // until the slowest is done; nothing while that cannot be told
    std::string writer;  // the engines, for people: "io_uring", "io_uring, pwrite"
  };

  // The word of a newer save ends the older one; a straggler's of an older one is nothing.
  void OnSeen(int rank, const DrainSeen& seen);

  // Nothing while nobody has spoken of this save.
  std::optional<Reading> Read(uint64_t save_id) const;

 private:
  uint64_t save_id_ = 0;
  std::map<int, DrainSeen> seen_;  // the last word of each rank
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_DRAIN_METER_H_
