// ControlClient: how the `cairn` command reaches the leader of a running session, through the host process.
// Blocking; one thread.
//
// The leader writes <dir>/CONTROL (0600): where the host process listens, and a control key that can ask but
// not join. The host relays a request to the leader of the named session and its replies back.
#ifndef CAIRN_RUNTIME_CONTROL_CONTROL_CLIENT_H_
#define CAIRN_RUNTIME_CONTROL_CONTROL_CLIENT_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/control/secret.h"

namespace cairn {

struct ControlPoint {
  std::string rendezvous;  // "addr:port[,addr:port…]"
  std::string key;         // <job>.<step>.<restart count>
  std::string session;
  Secret control_key;
};

// <dir>/CONTROL, of mode 0600. In a bucket whoever may read its objects may ask, too.
Status WriteControlFile(const std::string& dir, const ControlPoint& point);
// Removes <dir>/CONTROL if it is `point`'s: a life that was overtaken leaves the newer one's in place.
void RemoveControlFile(const std::string& dir, const ControlPoint& point);
// kNotFound: no live session has written one. kPermission: it belongs to another user.
Result<ControlPoint> ReadControlFile(const std::string& dir);

class ControlClient {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // kUnavailable: nobody listens any more (the session has ended); kPermission: the key is of another life.
  static Result<std::unique_ptr<ControlClient>> Connect(const ControlPoint& point, TimePoint deadline);
  ~ControlClient();

  Status Send(std::string_view request);
  // The next reply. kTimeout; kUnavailable: the session ended, or there is no leader.
  Result<std::string> Receive(TimePoint deadline);

 private:
  struct Impl;
  explicit ControlClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_CONTROL_CLIENT_H_
