// Copier: copies the run's newest checkpoint to the place of --checkpoint-copy while the step runs.
//
// It is `cairn push` (runtime/command/push.cc) in a process of its own, at the lowest priority: what it reads, waits for and dies of is never a
// rank's, nor the host process's.
//
//   1. Each durable save is told by Due. A push is begun then, unless one is under way or a pause is not over: then one follows.
//   2. Push copies the newest checkpoint, unless it is there, or the newest copy was saved less than `every` before. The pause after it is `every`,
//      or as long as push says that it is too early.
//   3. Where it fails this is said, once for each kind of failure in a life; the pause is a minute then, twice as long each time, an hour at most.
//   4. Stop sends SIGTERM: push gives its attempt and its claim up in good order, and nobody waits for it. The next life's first push, or one by
//      hand, makes up for it.
//
// Loop thread only; nothing here waits.
#ifndef CAIRN_RUNTIME_HOST_COPIER_H_
#define CAIRN_RUNTIME_HOST_COPIER_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/loop.h"
#include "runtime/host/host_protocol.h"
#include "runtime/settings.h"

namespace cairn {

struct CopierOptions {
  std::string program;  // the command `cairn`
  std::vector<std::string> environment;
  std::string dir;                                                  // the run's
  CopyRule copy;                                                    // `to`: absolute, or s3://BUCKET/PREFIX
  std::string keep;                                                 // of the place, as --checkpoint-keep
  std::chrono::milliseconds first_pause = std::chrono::minutes(1);  // after a failure
  std::function<void(const std::string& line)> say;
  std::function<void(const CopyState& state)> tell;  // whenever it changes
};

class Copier {
 public:
  Copier(Loop* loop, CopierOptions options);
  ~Copier();  // as Stop. What it leaves behind may stay a zombie until this process ends

  void Due(int64_t step);  // the run's newest durable checkpoint is of this step
  void Stop();             // nothing is begun any more

  const CopyState& state() const { return state_; }
  // For the end of the step: what the place does not have, and how it gets there; "" = nothing.
  std::string LastWord() const;

 private:
  struct Output {
    int fd = -1;  // the reading end
    std::unique_ptr<FdWatcher> watcher;
    std::string text;
  };

  void Begin();
  Status Spawn();
  Status Listen(Output* output, int* write_end);
  void Read(Output* output);
  void Reap();
  void Ended(int status);
  void Failed(const std::string& kind, const std::string& why);
  void Close();
  void Tell();

  Loop* const loop_;
  const CopierOptions options_;
  CopyState state_;
  int64_t newest_ = 0;  // step of the newest durable checkpoint; 0 = there is none
  int64_t begun_ = 0;   // what `newest_` was when the push under way, or the last one, began
  bool due_ = false;    // a push is to follow
  bool stopped_ = false;
  pid_t pid_ = -1;  // of the push under way
  Output out_, err_;
  std::chrono::milliseconds failure_pause_;
  std::set<std::string, std::less<>> said_;  // kinds of failures
  Timer pause_, reap_;
  bool pausing_ = false;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_COPIER_H_
