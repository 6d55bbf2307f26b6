#include "runtime/bulk/breaker.h"

#include <sys/eventfd.h>

#include <cerrno>

namespace cairn {

Result<std::shared_ptr<Breaker>> Breaker::Make() {
  Socket event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.fd() < 0) return Status::FromErrno(errno, "eventfd");
  return std::shared_ptr<Breaker>(new Breaker(std::move(event)));
}

void Breaker::Break(Status why) {
  {
    std::lock_guard lock(mutex_);
    if (!why_.ok()) return;
    why_ = std::move(why);
  }
  eventfd_write(event_.fd(), 1);
  source_.request_stop();
}

Status Breaker::status() const {
  std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace cairn
