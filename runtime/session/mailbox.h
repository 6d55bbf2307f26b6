// Mailbox: messages that the application's thread waits for while it is inside a collective call (open, restore). The loop puts them in,
// in the order of their arrival; the application takes them out by type and sender.
#ifndef CAIRN_RUNTIME_SESSION_MAILBOX_H_
#define CAIRN_RUNTIME_SESSION_MAILBOX_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "planner/base/status.h"

namespace cairn {

class Mailbox {
 public:
  struct Letter {
    int from = 0;
    uint16_t type = 0;
    std::string payload;
  };

  void Put(Letter letter);  // loop thread

  // From now on every wait fails with `why`: a member has gone, or the session ends. The first reason stays.
  void Break(Status why);

  // The next letter of `type` from rank `from` (−1 = from anybody), kTimeout after `bound`, or the reason given to Break.
  Result<Letter> Take(uint16_t type, int from, std::chrono::milliseconds bound);

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Letter> letters_;  // guarded by mutex_
  Status broken_;               // guarded by mutex_
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_MAILBOX_H_
