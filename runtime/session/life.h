// Life: this life's ownership of the run's directory. Leader only.
//
// All functions do blocking I/O on the directory: call them from the application's thread inside a collective call, or from the clerk's.
// One thread at a time.
#ifndef CAIRN_RUNTIME_SESSION_LIFE_H_
#define CAIRN_RUNTIME_SESSION_LIFE_H_

#include <functional>
#include <memory>
#include <string>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

struct LifeOptions {
  std::string dir;
  std::string name;  // of the run, for people
  FileMode mode;
  Identity self;
  std::function<HolderInSlurm(const Identity& holder)> ask_slurm;  // blocking, bounded
  std::function<void(const std::string& line)> say;                // while it waits
};

class Life {
 public:
  // Opens or makes the run and claims the next epoch; waits up to kBeatBound for the verdict on another holder. kBusy: it lives, and the
  // message names it.
  static Result<std::unique_ptr<Life>> Begin(const LifeOptions& options);

  const RunDirectory& directory() const { return directory_; }
  uint32_t epoch() const { return epoch_; }

  Status Beat() { return alive_.Beat(); }  // every kBeatInterval
  Status End() { return alive_.Leave(); }  // the last act

 private:
  Life(RunDirectory directory, uint32_t epoch, BeatFile alive)
      : directory_(std::move(directory)), epoch_(epoch), alive_(std::move(alive)) {}

  const RunDirectory directory_;
  const uint32_t epoch_;
  BeatFile alive_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_LIFE_H_
