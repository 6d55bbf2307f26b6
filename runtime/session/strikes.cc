#include "runtime/session/strikes.h"

#include "runtime/catalog/lives.h"

namespace cairn {

Status MayTryAgain(const RunDirectory& dir, const Listing& listing, const Checkpoint& checkpoint,
                   uint32_t epoch, int limit) {
  CAIRN_ASSIGN_OR_RETURN(const auto strikes, Strikes(dir, listing, checkpoint.name, epoch));
  const auto count = strikes.size();
  if (count < static_cast<size_t>(limit)) return OkStatus();
  const std::string step = std::to_string(checkpoint.id.step);
  std::string text = std::to_string(count) + (count == 1 ? " life" : " lives") + " went on from " +
                     checkpoint.name + " (step " + step +
                     ") and died without a newer checkpoint, so this one does not begin:";
  for (const LifeStory& life : strikes) {
    text += "\n  life " + std::to_string(life.epoch);
    if (!life.job.empty()) text += ", job " + life.job + "." + life.step_id + ", leader on " + life.node;
    text += ": " + (life.why.empty() ? "killed outright, or it left without cairn_finalize" : life.why);
  }
  text += "\nTo try it again: --checkpoint-resume=" + step +
          ", or --checkpoint-strikes=" + std::to_string(count + 1) +
          ". To go back further: --checkpoint-resume=STEP with an older step of `cairn ls " + dir.path() +
          "`. `cairn why " + dir.path() + "` tells of every life";
  return {Code::kCancelled, text};
}

}  // namespace cairn
