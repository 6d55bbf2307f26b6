// Epochs: which life owns the run's directory. Only the newest epoch commits and prunes. The protocol is
// described in epoch.cc.
//
// How a life begins:
//   1. NewestEpoch. If there is one, poll ReadBeat(ALIVE-<n>) into a BeatWatch and ask JudgeHolder until it
//      says other than kWait (the caller asks Slurm, if it can be reached, and passes the answer in). kHeld:
//      refuse, naming the holder (Describe).
//   2. ClaimEpoch(n). kBusy: another life was faster; begin again.
//   3. BeatFile::Create(ALIVE-<n+1>), then Beat() every kBeatInterval, Leave() as the life's last act.
//   4. TakeOver: older uncommitted attempts become dead, and what was being removed is.
//   5. Restore, then PublishParent, before the first attempt (interop/run_writer.h: after the first commit, which decides it).
#ifndef CAIRN_RUNTIME_CATALOG_EPOCH_H_
#define CAIRN_RUNTIME_CATALOG_EPOCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/beat.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

// Who claims. All of it is for people, except cluster, job, step, restart and claim, which JudgeHolder compares, and whether it copies.
struct Identity {
  std::string cluster;  // Slurm's name of the cluster; "" = unknown
  std::string job;      // "" = outside Slurm
  std::string step;
  uint32_t restart = 0;  // the job's restart count
  std::string node;
  int64_t pid = 0;
  int64_t uid = 0;
  std::string cairn_version;
  std::string started;  // UTC, RFC 3339
  std::string claim;    // random, of one session of one process
  std::string
      copies;  // what claims only in order to copy checkpoints here: the directory of these; "" = a life

  friend bool operator==(const Identity&, const Identity&) = default;
};

struct EpochClaim {
  uint32_t epoch = 0;
  Identity holder;
};

// "job 123, step 0, restart 2, on n1 (pid 4711), since 2026-03-01T12:00:00Z"
std::string Describe(const Identity& identity);

// The newest claimed epoch, or nothing in a run without any. An unreadable claim is kDamage: nobody can tell
// whether its holder lives.
Result<std::optional<EpochClaim>> NewestEpoch(const RunDirectory& dir);

enum class Verdict {
  kFree,  // the holder is gone: claim
  kHeld,  // the holder lives: refuse
  kWait,  // not known yet: observe its counter again after kBeatInterval
};

// What Slurm said about the holder's step.
enum class HolderInSlurm { kUnknown, kRunning, kGone };

// Pure. `beat` is what the watch of the holder's ALIVE file answered last. Free: it left; or it is ourselves (a claim
// that failed after its file could be seen); or it is an earlier life of our own job (a higher restart count kills it by construction); or Slurm says that its step is gone;
// or its counter stood still and Slurm does not say that it runs. Held: its counter moves, or it stands still
// while Slurm says that the step runs (suspended).
Verdict JudgeHolder(const Identity& holder, const Identity& self, BeatWatch::State beat, HolderInSlurm slurm);

// Claims the epoch after `newest` (0 when there is none), which the caller judged to be free. Returns the new
// number; kBusy, naming the holder, when another life claimed it first.
Result<uint32_t> ClaimEpoch(const RunDirectory& dir, uint32_t newest, const Identity& self);

// The fence: OK while `epoch` is the newest, kFenced, naming the newer holder, once it is not, kNotFound when
// the claim (the directory) was removed.
Status StillNewest(const RunDirectory& dir, uint32_t epoch);

struct TakenOver {
  std::vector<std::string> dead;       // attempts without a manifest, renamed, or in a bucket removed
  std::vector<std::string> committed;  // attempts whose manifest appeared meanwhile: checkpoints
  std::vector<std::string> returned;   // checkpoints that a life which had been overtaken was about to remove
};

// Renames uncommitted attempts of older epochs (in a bucket: removes them), so that what a stale writer still does in them can no longer
// become a checkpoint; then removes what is dead, ends removals that were cut short (removal.cc), and removes what else other lives left
// behind: folders of ranks that wrote through, what nodes told of the memory of dead ranks, files in the making. Idempotent. `claim`: this life's own (Identity::claim).
Result<TakenOver> TakeOver(const RunDirectory& dir, uint32_t epoch, const std::string& claim);

// Says from which checkpoint this life goes on ("" = fresh). From then on later checkpoints of older epochs
// are orphans. Once per epoch: kExists, unless it says the same.
Status PublishParent(const RunDirectory& dir, uint32_t epoch, const std::string& checkpoint);

// What PublishParent wrote; nothing while the epoch has not decided.
Result<std::optional<std::string>> ReadParent(const RunDirectory& dir, uint32_t epoch);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_EPOCH_H_
