// BeatFile and BeatWatch: a counter that its owner raises, and the judgement whether it moves.
//
// Clocks of two hosts are never compared: a watcher measures, on its own steady clock, how long the counter
// stood still.
#ifndef CAIRN_RUNTIME_CATALOG_BEAT_H_
#define CAIRN_RUNTIME_CATALOG_BEAT_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "planner/base/status.h"
#include "runtime/formats/counter.h"
#include "runtime/io/file.h"

namespace cairn {

inline constexpr std::chrono::seconds kBeatInterval{5};
inline constexpr std::chrono::seconds kBeatBound{30};  // unmoved for so long = dead

// Not thread-safe; one owner.
class BeatFile {
 public:
  // Makes the file with counter 1.
  static Result<BeatFile> Create(std::string path, FileMode mode = {});

  // Raises the counter, in place (works on a full disk). Call it every kBeatInterval.
  Status Beat();

  // Says that the owner has gone in good order; nobody needs to wait for the bound.
  Status Leave();

  const std::string& path() const { return path_; }

 private:
  explicit BeatFile(std::string path) : path_(std::move(path)) {}
  Status Write();

  std::string path_;
  Counter counter_;
};

// Nothing when the file is not there or was read in the middle of a write. The store's error when that cannot be told.
Result<std::optional<Counter>> ReadBeat(const std::string& path);

// Pure. Feed it what ReadBeat gave and the time, again and again.
class BeatWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class State {
    kWaiting,  // not seen to move, but not for kBeatBound yet
    kMoving,   // moved within the last kBeatBound
    kStill,    // unmoved (or not there) for kBeatBound
    kLeft,     // the owner said that it has gone
  };

  // A read that failed says nothing of the owner, who may have been kept from writing by the same fault: the bound begins anew after it.
  State Observe(const Result<std::optional<Counter>>& read, Time now);

 private:
  std::optional<Counter> last_;
  std::optional<Time> since_;  // when `last_` was first seen, without a failure since
  bool seen_ = false;          // the store has answered once
  bool moved_ = false;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_BEAT_H_
