// LifeStory: what a run's journal tells of each of its lives, and above all why it ended. Pure; any thread.
//
// The journal is written by the leader (runtime/session/keeper.h): one JSON object a line, with "event",
// "time" and "epoch". An epoch is a life.
#ifndef CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_
#define CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct LifeStory {
  uint32_t epoch = 0;
  std::string job, step_id, node, began;
  int64_t restart = 0;
  int64_t ranks = 0;
  std::string restored;  // the checkpoint that it went on from; "" = it began fresh, or never came so far
  int64_t saves = 0;
  std::optional<int64_t> last_saved_step;
  std::string last_trigger;
  int64_t dropped = 0;               // saves that were given up
  std::string last_dropped;          // why the last of them was
  std::vector<std::string> damaged;  // "<checkpoint>: <why>"

  // "finished", "preempted", "time limit", "requeued", "cancelled", "unknown" (signalled, and Slurm gave no
  // cause), "rank lost"; GuessEnd adds "left", "killed" and "open".
  std::string end;
  std::string why;
  std::optional<int64_t> end_step;
  std::optional<bool> requeued;  // by Cairn; nothing = it was not tried
  std::string requeue_text;
};

// By epoch. Lines that are no events, and events of no epoch, are left out.
std::vector<LifeStory> TellLives(std::string_view journal);

// Fills in the end of a life of which the journal says none. `left`: its sign of life says that it went in
// good order. `newest`: no later life is known.
void GuessEnd(LifeStory* life, bool left, bool newest);

// Some lines for a person.
std::string Tell(const LifeStory& life);

nlohmann::ordered_json LifeJson(const LifeStory& life);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_LIFE_STORY_H_
