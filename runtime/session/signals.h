// Signals: this process as a member of the step, by way of the preload shim (hooks/preload/shim.h). Loop thread only.
#ifndef CAIRN_RUNTIME_SESSION_SIGNALS_H_
#define CAIRN_RUNTIME_SESSION_SIGNALS_H_

#include <functional>
#include <memory>

#include "hooks/preload/shim.h"
#include "runtime/control/loop.h"
#include "runtime/io/fd.h"
#include "runtime/log/log.h"

namespace cairn {

class Signals {
 public:
  // `on_signal(signo, from_slurm)` is called on the loop for each watched signal: SIGTERM, SIGINT where the program does not ignore it, and the extra
  // one; until Terminate, RunOwnHandler or Interrupt it has no other effect. Without a shim (a process that was started by hand)
  // nothing is watched.
  Signals(Loop* loop, Log* log, int extra_signal, std::function<void(int signo, bool from_slurm)> on_signal);
  ~Signals();  // the program's own dispositions are in force again

  // SIGTERM's own effect: on the shielded processes of this node, then here. May not return.
  void Terminate();
  // Runs the program's own SIGTERM handler, if it has one.
  void RunOwnHandler();
  // What SIGINT would have done without Cairn. May not return.
  void Interrupt();

 private:
  const cairn_shim_v1* shim_ = nullptr;
  UniqueFd event_;
  std::unique_ptr<FdWatcher> watcher_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_SIGNALS_H_
