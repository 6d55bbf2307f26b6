// Breaker: ends every wait of one transfer at once, for one reason. Shared by all who take part in it on this member: the senders, the receivers
// and whoever waits for them. Any thread.
#ifndef CAIRN_RUNTIME_BULK_BREAKER_H_
#define CAIRN_RUNTIME_BULK_BREAKER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "planner/base/status.h"
#include "runtime/control/socket.h"

namespace cairn {

class Breaker {
 public:
  static Result<std::shared_ptr<Breaker>> Make();
  // One for a part of the transfer: it breaks when `whole` does, and can be broken alone.
  static Result<std::shared_ptr<Breaker>> MakePart(std::shared_ptr<Breaker> whole);

  void Break(Status why);  // not OK; the first reason stays
  Status status() const;   // OK until then

  int fd() const { return event_.fd(); }                         // readable once broken
  std::stop_token token() const { return source_.get_token(); }  // for std::condition_variable_any

 private:
  explicit Breaker(Socket event) : event_(std::move(event)) {}

  const Socket event_;  // an eventfd; a Socket for the sake of ForkGuard
  std::stop_source source_;
  mutable std::mutex mutex_;
  Status why_;  // guarded by mutex_

  std::shared_ptr<Breaker> whole_;
  std::optional<std::stop_callback<std::function<void()>>>
      follow_;  // goes first: it waits for a call under way
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_BREAKER_H_
