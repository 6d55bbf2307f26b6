// ControlDesk: the requests of the `cairn` command, each answered once. Loop thread only.
//
// Bodies are JSON: {"op":"status"} → the status; {"op":"save","tag":"…"} → {"saved":bool,…} once the save that serves the request has ended;
// {"op":"resize","nodes":"…"} → the same, and if it was saved this life ends.
//
// How a request finds its save: the desk asks rank 0's member for one; the leader numbers what reaches it, and a save that ends lists the
// numbers that it answers (agreement::SaveEnded). So an answer is never that of a save which was under way already.
#ifndef CAIRN_RUNTIME_SESSION_CONTROL_DESK_H_
#define CAIRN_RUNTIME_SESSION_CONTROL_DESK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "runtime/agreement/leader.h"
#include "runtime/host/host_protocol.h"

namespace cairn {

class ControlDesk {
 public:
  struct Links {
    std::function<std::string()> why_not;  // no save can be asked for now; "" = one can
    std::function<void(const std::string& tag)> ask;
    std::function<std::string()> why_not_resize;  // "" = this life may end for one
    std::function<void(const std::string& nodes)> resize;
    std::function<std::string()> status;  // JSON
    std::function<void(const ControlReply& reply)> reply;
  };

  explicit ControlDesk(Links links) : links_(std::move(links)) {}

  void OnRequest(const ControlRequest& request);
  // A request for a save with this tag, from rank 0's member, got this number.
  void OnNumbered(const std::string& tag, uint64_t number);
  // `checkpoint`: that of the newest save of this life; "" = none.
  void OnSaveEnded(const agreement::SaveEnded& ended, const std::string& checkpoint);

 private:
  struct Waiting {
    std::string tag;
    std::string nodes;    // what to resize to; "" = no resize
    uint64_t number = 0;  // 0: on its way to the leader
  };

  const Links links_;
  std::map<uint64_t, Waiting> waiting_;  // by id of the request
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_CONTROL_DESK_H_
