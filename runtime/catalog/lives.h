// Lives: what a run's journal and epochs tell of the lives that it has had, and which of them count against a checkpoint.
//
// The journal is written by the leader (runtime/session/keeper.h): one JSON object a line, with "event", "time" and "epoch". An epoch is a
// life. It is a courtesy file: what it does not tell is not known. What a life went on from and whether it committed is read from PARENT
// files and manifests.
#ifndef CAIRN_RUNTIME_CATALOG_LIVES_H_
#define CAIRN_RUNTIME_CATALOG_LIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/program.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

struct LifeStory {
  uint32_t epoch = 0;
  std::string job, step_id, node, began;
  std::string run_life;  // which life of which `cairn run` (SLURM_CAIRN_LIFE); "" = of none
  int64_t restart = 0;
  int64_t ranks = 0;
  std::string on_nodes;  // as Slurm writes them; "" = not known
  std::optional<Program> program;
  std::string restored;  // the checkpoint that it went on from; "" = it began fresh, or never came so far
  int64_t saves = 0;
  std::optional<int64_t> last_saved_step;
  std::string last_trigger;
  int64_t dropped = 0;               // saves that were given up
  std::string last_dropped;          // why the last of them was
  std::vector<std::string> damaged;  // "<checkpoint>: <why>"

  // "finished", "finalized" (on all ranks, but not recorded as finished), "preempted", "time limit", "requeued", "cancelled", "interrupted"
  // (SIGINT), "unknown" (SIGTERM, and Slurm gave no cause), "rank lost", "resize"; "" = the journal does not say.
  std::string end;
  std::string why;
  std::string nodes;  // what a resize asked for: a number, or a list of names
  std::optional<int64_t> end_step;
  std::optional<bool> requeued;  // by Cairn; nothing = it was not tried
  std::string requeue_text;
};

// Pure. By epoch. Lines that are no events, and events of no epoch, are left out.
std::vector<LifeStory> TellLives(std::string_view journal);

// Those of the directory's journal; none when there is no journal.
Result<std::vector<LifeStory>> ReadLives(const RunDirectory& dir);

// Strikes against `checkpoint`: the lives before `epoch` that went on from it, committed nothing, and ended by themselves: a rank died or
// left, or all were killed outright. One that was told to end (preempted, time limit, cancelled, Ctrl-C, a kill -TERM), or whose ranks all came
// to cairn_finalize, is no strike. A life of which the journal does not tell counts. Oldest first.
Result<std::vector<LifeStory>> Strikes(const RunDirectory& dir, const Listing& listing,
                                       const std::string& checkpoint, uint32_t epoch);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_LIVES_H_
