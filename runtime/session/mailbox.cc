#include "runtime/session/mailbox.h"

#include <algorithm>

namespace cairn {

void Mailbox::Put(Letter letter) {
  {
    std::lock_guard lock(mutex_);
    letters_.push_back(std::move(letter));
  }
  arrived_.notify_all();
}

void Mailbox::Break(Status why) {
  {
    std::lock_guard lock(mutex_);
    if (broken_.ok()) broken_ = std::move(why);
  }
  arrived_.notify_all();
}

Result<Mailbox::Letter> Mailbox::Take(uint16_t type, int from, std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto it = std::find_if(letters_.begin(), letters_.end(), [&](const Letter& l) {
      return l.type == type && (from < 0 || l.from == from);
    });
    if (it != letters_.end()) {
      Letter letter = std::move(*it);
      letters_.erase(it);
      return letter;
    }
    if (!broken_.ok()) return broken_;
    if (arrived_.wait_until(lock, deadline) == std::cv_status::timeout) {
      return Status(Code::kTimeout, "no answer from " +
                                        (from < 0 ? "the other ranks" : "rank " + std::to_string(from)) +
                                        " within " + std::to_string(bound.count() / 1000) + " s");
    }
  }
}

}  // namespace cairn
