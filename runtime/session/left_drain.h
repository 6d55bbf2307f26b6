// DrainLeft: one node's part in making durable what a dead life left complete in the memory of its nodes, when no other life is there yet to
// rescue it (rescue_leader.h): in the epilog, or by hand. The protocol is described in left_drain.cc.
//
// As the user who owns the images; blocking; one thread, which must not be the program's. Any number of processes on any number of nodes may do
// it at once, and each may be killed at any instant.
#ifndef CAIRN_RUNTIME_SESSION_LEFT_DRAIN_H_
#define CAIRN_RUNTIME_SESSION_LEFT_DRAIN_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/write_engine.h"
#include "runtime/staging/local_tier.h"

namespace cairn {

struct LeftDrainOptions {
  LocalTierOptions tier;              // whose folders; its job and node tell this node from the others
  std::chrono::nanoseconds within{};  // when the last step must have begun
  Writer writer = Writer::kAuto;
  std::function<void(const std::string& line)> say;
};

// Of one directory.
struct LeftDrained {
  std::string dir;
  int64_t step = 0;
  std::string checkpoint;  // that is durable now
  uint64_t bytes = 0;      // that this node wrote
};

// What is durable now, by directory; nothing where no node had anything to make durable. The first error, after all directories were tried:
// kTimeout: not all nodes of the life came, or the images were not written within the time. kFenced: another life goes on in the directory, and
// decides. kUnavailable: it is a bucket, where only a life can. kDamage: images or their records are not what was saved.
// In each case the directory is as a killed life leaves it.
Result<std::vector<LeftDrained>> DrainLeft(const LeftDrainOptions& options);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LEFT_DRAIN_H_
