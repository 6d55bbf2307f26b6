#include "runtime/command/life_story.h"

#include <nlohmann/json.hpp>

#include "runtime/command/text.h"

namespace cairn {

namespace {
using Json = nlohmann::ordered_json;
}

void GuessEnd(LifeStory* life, bool left, bool newest) {
  if (!life->end.empty()) return;
  if (left) {
    life->end = "left";
    life->why = "the program ended in good order, without cairn_finalize";
  } else if (newest) {
    life->end = "open";
    life->why = "it runs still, or was killed outright; `cairn status` tells which";
  } else {
    life->end = "killed";
    life->why = "nothing was written: killed outright (SIGKILL, out of memory), or its node failed";
  }
}

std::string Tell(const LifeStory& life) {
  constexpr const char* kIndent = "\n  ";
  std::string out = "life " + std::to_string(life.epoch) + ": ";
  out += life.job.empty() ? "outside Slurm"
                          : "job " + life.job + (life.step_id.empty() ? "" : "." + life.step_id) +
                                ", restart " + std::to_string(life.restart);
  out += ", " + Count(static_cast<size_t>(life.ranks), "rank") + ", leader on " + life.node + ", began " +
         life.began;
  out += kIndent + (life.restored.empty() ? "began fresh" : "went on from " + life.restored);
  for (const std::string& damaged : life.damaged)
    out += kIndent + ("passed over a damaged checkpoint, " + damaged);
  out += kIndent +
         (life.saves == 0 ? "saved nothing" : "saved " + Count(static_cast<size_t>(life.saves), "time"));
  if (life.last_saved_step)
    out += ", last at step " + std::to_string(*life.last_saved_step) + " (" + life.last_trigger + ")";
  if (life.dropped > 0)
    out += kIndent + ("gave up " + Count(static_cast<size_t>(life.dropped), "save") + ", the last since " +
                      life.last_dropped);
  out += kIndent + ("end: " + life.end) + (life.end_step ? " at step " + std::to_string(*life.end_step) : "");
  if (!life.why.empty()) out += " (" + life.why + ")";
  if (life.requeued)
    out += kIndent + std::string(*life.requeued ? "requeued: " : "not requeued: ") + life.requeue_text;
  return out + "\n";
}

nlohmann::ordered_json LifeJson(const LifeStory& life) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"epoch", life.epoch},
          {"job", life.job},
          {"step_id", life.step_id},
          {"restart", life.restart},
          {"node", life.node},
          {"ranks", life.ranks},
          {"began", life.began},
          {"restored", or_null(life.restored)},
          {"saves", life.saves},
          {"last_saved_step", life.last_saved_step ? Json(*life.last_saved_step) : Json()},
          {"last_trigger", or_null(life.last_trigger)},
          {"dropped", life.dropped},
          {"last_dropped", or_null(life.last_dropped)},
          {"damaged", life.damaged},
          {"end", life.end},
          {"why", or_null(life.why)},
          {"end_step", life.end_step ? Json(*life.end_step) : Json()},
          {"requeued", life.requeued ? Json(*life.requeued) : Json()},
          {"requeue_text", or_null(life.requeue_text)}};
}

}  // namespace cairn
