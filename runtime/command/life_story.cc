#include "runtime/command/life_story.h"

#include <nlohmann/json.hpp>

#include "runtime/command/text.h"

namespace cairn {

namespace {

using Json = nlohmann::ordered_json;

// With quotes where a shell would need some.
std::string Words(const std::vector<std::string>& arguments) {
  std::string out;
  for (const std::string& argument : arguments) {
    const bool plain = !argument.empty() && argument.find_first_of(" \t\n'\"$\\*?") == std::string::npos;
    out += (out.empty() ? "" : " ") + (plain ? argument : "'" + argument + "'");
  }
  return out.empty() ? "none" : out;
}

}  // namespace

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

std::vector<std::string> Changes(const LifeStory& before, const LifeStory& life) {
  std::vector<std::string> out;
  if (before.began.empty() || life.began.empty()) return out;
  if (before.ranks != life.ranks)
    out.push_back(std::to_string(before.ranks) + " -> " + Count(static_cast<size_t>(life.ranks), "rank"));
  if (!before.on_nodes.empty() && !life.on_nodes.empty() && before.on_nodes != life.on_nodes)
    out.push_back("nodes " + before.on_nodes + " -> " + life.on_nodes);
  if (!before.program || !life.program) return out;
  const Program &was = *before.program, &is = *life.program;
  if (was.path != is.path) out.push_back("program " + was.path + " -> " + is.path);
  if (!was.hash.empty() && !is.hash.empty() && was.hash != is.hash)
    out.push_back(was.path == is.path ? "program rebuilt" : "with other contents");
  if (was.arguments != is.arguments)
    out.push_back("arguments " + Words(was.arguments) + " -> " + Words(is.arguments));
  return out;
}

std::string Tell(const LifeStory& life, const LifeStory* before) {
  constexpr const char* kIndent = "\n  ";
  std::string out = "life " + std::to_string(life.epoch) + ": ";
  out += life.job.empty() ? "outside Slurm"
                          : "job " + life.job + (life.step_id.empty() ? "" : "." + life.step_id) +
                                ", restart " + std::to_string(life.restart);
  out += ", " + Count(static_cast<size_t>(life.ranks), "rank") + ", leader on " + life.node + ", began " +
         life.began;
  if (before != nullptr) {
    std::string changes;
    for (const std::string& change : Changes(*before, life))
      changes += (changes.empty() ? "" : "; ") + change;
    if (!changes.empty()) out += kIndent + ("changed: " + changes);
  }
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

nlohmann::ordered_json LifeJson(const LifeStory& life, const LifeStory* before) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"epoch", life.epoch},
          {"job", life.job},
          {"step_id", life.step_id},
          {"restart", life.restart},
          {"node", life.node},
          {"ranks", life.ranks},
          {"nodes", or_null(life.on_nodes)},
          {"program", life.program ? Json(life.program->path) : Json()},
          {"program_hash", life.program ? or_null(life.program->hash) : Json()},
          {"arguments", life.program ? Json(life.program->arguments) : Json()},
          {"changed", before != nullptr ? Json(Changes(*before, life)) : Json::array()},
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
