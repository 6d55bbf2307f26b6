// Together: calls that wait for a store, made at the same time. The fsyncs of a commit share one wait then, and a journaling file system
// one transaction.
#ifndef CAIRN_RUNTIME_IO_TOGETHER_H_
#define CAIRN_RUNTIME_IO_TOGETHER_H_

#include <functional>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// Makes all calls, by as many threads (at most 8) as are to be had, the caller's among them, and returns when all have returned: the first
// error in their order, or OK. The calls must not throw.
Status Together(const std::vector<std::function<Status()>>& calls);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_TOGETHER_H_
