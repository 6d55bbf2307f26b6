#include "runtime/session/life.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/io/thread.h"

namespace cairn {
namespace {

constexpr std::chrono::seconds kListingBound{60};  // NFS keeps a listing as long, by default

// Returns when the newest claim's holder is judged to be gone.
Status AwaitFree(const RunDirectory& dir, const EpochClaim& newest, const LifeOptions& options) {
  const HolderInSlurm in_slurm = options.ask_slurm(newest.holder);
  BeatWatch watch;
  auto answered = std::chrono::steady_clock::now();  // when a read last succeeded
  bool said = false;
  for (;;) {
    const auto read = ReadBeat(dir.PathOf(names::AliveFile(newest.epoch)));
    const auto now = std::chrono::steady_clock::now();
    const auto beat = watch.Observe(read, now);
    if (read.ok()) answered = now;
    switch (JudgeHolder(newest.holder, options.self, beat, in_slurm)) {
      case Verdict::kFree:
        return OkStatus();
      case Verdict::kHeld:
        return {Code::kBusy, dir.path() + " is in use by " + Describe(newest.holder) +
                                 ". Wait for it to end, or give this one another --checkpoint-dir"};
      case Verdict::kWait:
        if (now - answered >= kBeatBound)
          return read.status().Annotate("whether " + Describe(newest.holder) + " lives cannot be told");
        if (!said)
          options.say(dir.path() + " was last used by " + Describe(newest.holder) +
                      "; waiting up to 30 s to see whether it lives");
        said = true;
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

// Nodes may be about to make durable what the newest life left in their memory (left_drain.cc, 4): this one waits as long as a counter moves, since
// to claim would fence them. Each has a time limit.
void AwaitDrainOfLeft(const RunDirectory& dir, uint32_t epoch, const LifeOptions& options) {
  const std::string folder = dir.PathOf(names::LeftFolder(epoch));
  std::map<std::string, BeatWatch> watches;
  for (bool said = false;;) {
    if (dir.in_bucket()) return;
    const auto entries = ListDirectory(folder);
    if (!entries.ok()) return;
    bool moves = false;
    for (const std::string& name : *entries) {
      if (!name.ends_with(names::kAliveSuffix)) continue;
      const auto beat =
          watches[name].Observe(ReadBeat(folder + "/" + name), std::chrono::steady_clock::now());
      moves |= beat == BeatWatch::State::kMoving || beat == BeatWatch::State::kWaiting;
    }
    if (!moves) return;
    if (!std::exchange(said, true))
      options.say("what the life before left in the memory of its nodes is being written to " + dir.path() +
                  "; waiting until that has ended");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

Status MayFollow(const RunDirectory& dir, const EpochClaim& newest, const Identity& self) {
  if (self.copies.empty() || !newest.holder.copies.empty()) return OkStatus();
  return {Code::kMismatch, dir.path() + " is no copy of " + self.copies +
                               " (any more): a run goes on there, of " + Describe(newest.holder) +
                               ". Copy to another place"};
}

// A claim that comes too late begins again, with the faster one for the newest. An old listing of a network file system (another node made
// the newest claim) looks the same, until the client's cache has run out.
Result<uint32_t> Claim(const RunDirectory& dir, const LifeOptions& options) {
  const auto bound = std::chrono::steady_clock::now() + kListingBound;
  for (;;) {
    CAIRN_ASSIGN_OR_RETURN(const std::optional<EpochClaim> newest, NewestEpoch(dir));
    if (newest) {
      CAIRN_RETURN_IF_ERROR(MayFollow(dir, *newest, options.self));
      CAIRN_RETURN_IF_ERROR(AwaitFree(dir, *newest, options));
      AwaitDrainOfLeft(dir, newest->epoch, options);
    }
    Result<uint32_t> epoch = ClaimEpoch(dir, newest ? newest->epoch : 0, options.self);
    if (epoch.ok() && *epoch < options.at_least)
      continue;  // no number is left out: another's claim would be in it
    if (epoch.status().code() != Code::kBusy || std::chrono::steady_clock::now() > bound) return epoch;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

Result<std::unique_ptr<Life>> Life::Begin(const LifeOptions& options) {
  CAIRN_ASSIGN_OR_RETURN(RunDirectory dir,
                         options.self.copies.empty()
                             ? RunDirectory::Open(options.dir, options.name, options.mode, options.origin)
                             : RunDirectory::OpenExisting(options.dir, options.mode));
  CAIRN_ASSIGN_OR_RETURN(const uint32_t epoch, Claim(dir, options));
  CAIRN_ASSIGN_OR_RETURN(BeatFile alive, BeatFile::Create(dir.PathOf(names::AliveFile(epoch)), dir.mode()));
  CAIRN_ASSIGN_OR_RETURN(const TakenOver taken, TakeOver(dir, epoch, options.self.claim));
  // A later life may have overtaken this one: then nothing more of the directory is its own.
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));
  for (const std::string& name : taken.committed)
    options.say(name + " was committed while it was taken over: it counts");
  for (const std::string& name : taken.returned)
    options.say(name + " was about to be removed by a life that had been overtaken: it counts");
  std::unique_ptr<Life> life(new Life(std::move(dir), epoch, std::move(alive), options));
  try {
    life->pulse_ = StartThread("cairn-pulse", [life = life.get()] { life->KeepBeating(); });
  } catch (const std::system_error& e) {
    return Status::FromErrno(e.code().value(), "start the thread cairn-pulse");
  }
  return life;
}

Life::Life(RunDirectory directory, uint32_t epoch, BeatFile alive, const LifeOptions& options)
    : directory_(std::move(directory)),
      epoch_(epoch),
      say_(options.say),
      beat_interval_(options.beat_interval),
      alive_(std::move(alive)) {}

void Life::KeepBeating() {
  bool well = true;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, beat_interval_, [this] { return ending_; })) {
    lock.unlock();
    const Status beat = alive_.Beat();
    // Once for all beats that fail in a row.
    if (!beat.ok() && well) say_("the sign of life was not written: " + beat.message());
    well = beat.ok();
    lock.lock();
  }
}

void Life::StopBeating() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (pulse_.joinable()) pulse_.join();
}

Status Life::End() {
  StopBeating();
  return alive_.Leave();
}

}  // namespace cairn
