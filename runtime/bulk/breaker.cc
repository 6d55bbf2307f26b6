#include "runtime/bulk/breaker.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace cairn {

Result<std::shared_ptr<Breaker>> Breaker::Make() {
  Socket event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.fd() < 0) return Status::FromErrno(errno, "eventfd");
  return std::shared_ptr<Breaker>(new Breaker(std::move(event)));
}

Result<std::shared_ptr<Breaker>> Breaker::MakePart(std::shared_ptr<Breaker> whole) {
  CAIRN_ASSIGN_OR_RETURN(std::shared_ptr<Breaker> part, Make());
  part->whole_ = std::move(whole);
  part->follow_.emplace(part->whole_->token(), [raw = part.get()] { raw->Break(raw->whole_->status()); });
  return part;
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
