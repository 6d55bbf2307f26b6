// Life: this life's ownership of the run's directory. Leader only.
//
// While it lasts, a thread of its own raises the counter in ALIVE-<epoch>: whoever reads it takes a counter that stands still for kBeatBound
// for a dead life, so it must not wait for a restore, a commit or anything else of the clerk's.
//
// All functions do blocking I/O on the directory: call them from the application's thread inside a collective call, or from the clerk's.
// One thread at a time.
#ifndef CAIRN_RUNTIME_SESSION_LIFE_H_
#define CAIRN_RUNTIME_SESSION_LIFE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

struct LifeOptions {
  std::string dir;
  std::string name;              // of the run, for people
  std::optional<Origin> origin;  // for a run that is not there yet
  FileMode mode;
  Identity self;
  uint32_t at_least = 1;  // the epoch to claim, unless that is past already
  std::function<HolderInSlurm(const Identity& holder)> ask_slurm;  // blocking, bounded
  std::function<void(const std::string& line)> say;                // any thread: while it waits; of the beat
  std::chrono::milliseconds beat_interval = kBeatInterval;
};

class Life {
 public:
  // Opens or makes the run and claims the next epoch; waits up to kBeatBound for the verdict on another holder. kBusy: it lives, and the
  // message names it. kFenced: another life has overtaken this one in the meantime.
  // One that only copies (Identity::copies) makes no run: kNotFound where there is none. kMismatch: the newest claim is a life's: from then on
  // the run goes on here.
  static Result<std::unique_ptr<Life>> Begin(const LifeOptions& options);

  const RunDirectory& directory() const { return directory_; }
  uint32_t epoch() const { return epoch_; }

  Status End();  // the last act

  ~Life() { StopBeating(); }  // without End the others wait for the bound
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

 private:
  Life(RunDirectory directory, uint32_t epoch, BeatFile alive, const LifeOptions& options);
  void KeepBeating();
  void StopBeating();

  const RunDirectory directory_;
  const uint32_t epoch_;
  const std::function<void(const std::string& line)> say_;
  const std::chrono::milliseconds beat_interval_;
  BeatFile alive_;  // the pulse's, until that has been stopped
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread pulse_;    // KeepBeating, once it has begun
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LIFE_H_
