// Dialer: connects to one peer that has several addresses, trying one after the other, again and again, until it is destroyed. Loop thread only.
#ifndef CAIRN_RUNTIME_CONTROL_DIALER_H_
#define CAIRN_RUNTIME_CONTROL_DIALER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/connection.h"

namespace cairn {

class Dialer {
 public:
  // The proven connection, without events; or kPermission when all addresses were tried and one of them refused us. Called once; may destroy
  // the dialer.
  using Done = std::function<void(Result<std::unique_ptr<Connection>>)>;

  Dialer(Loop* loop, std::vector<std::string> addresses, HandshakeParty party, Done done);

  // The last attempt's error, for the message when the caller's bound has passed.
  const Status& last_error() const { return last_error_; }

 private:
  void Try();
  void Failed(const Status& why);

  Loop* const loop_;
  const std::vector<std::string> addresses_;
  const HandshakeParty party_;
  const Done done_;
  size_t next_ = 0;
  Status refusal_;  // an address refused us in this round
  Status last_error_;
  std::unique_ptr<Connection> attempt_;
  Timer timer_;  // the attempt's bound, or the pause before the next round
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_DIALER_H_
