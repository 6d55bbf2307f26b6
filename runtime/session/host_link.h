// HostLink: the leader's questions to the host process, each answered once: by the host, or with nothing when it does not answer in time.
// Loop thread only.
#ifndef CAIRN_RUNTIME_SESSION_HOST_LINK_H_
#define CAIRN_RUNTIME_SESSION_HOST_LINK_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/catalog/epoch.h"
#include "runtime/control/fabric.h"
#include "runtime/control/loop.h"
#include "runtime/host/host_protocol.h"

namespace cairn {

// What to ask Slurm about the holder of a directory, from a session on `cluster`; nothing where Slurm cannot know: it is outside of Slurm, on
// another cluster, or in a job but in no step of it (a batch script's own processes), which "no such step" would call gone.
std::optional<HolderQuery> QueryAbout(const Identity& holder, const std::string& cluster);

class HostLink {
 public:
  HostLink(Loop* loop, Fabric* fabric) : loop_(loop), fabric_(fabric) {}

  // `done` is called once, never from within this call.
  void AskCause(std::chrono::milliseconds notice, std::function<void(std::optional<CauseReply>)> done);
  void AskHolder(HolderQuery query, std::function<void(std::optional<HolderReply>)> done);
  void AskRequeue(std::function<void(std::optional<RequeueReply>)> done);

  template <typename T>
  void Tell(const T& message) {
    // Without a host process there is nobody to tell.
    (void)fabric_->SendToHost(T::kType, EncodeHostMessage(message));
  }

  // A message of the host process that is an answer; false when it is none.
  bool OnHost(uint16_t type, const std::string& payload);

 private:
  struct Pending {
    std::function<void(const std::string* payload)> done;
    std::unique_ptr<Timer> bound;
  };
  template <typename Query, typename Reply>
  void Ask(Query query, std::chrono::milliseconds bound, std::function<void(std::optional<Reply>)> done);
  void Answer(uint64_t id, const std::string* payload);

  Loop* const loop_;
  Fabric* const fabric_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Pending> pending_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_HOST_LINK_H_
