#include "runtime/supervisor/judge.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/formats/names.h"

namespace cairn {
namespace {

using Kind = StepVerdict::Kind;
using std::chrono::seconds;

// A node that Slurm has not missed yet makes several starts fail.
constexpr int kMaxUnopened = 4;
constexpr seconds kMaxPause{60};
// Rank 0 counts the steps; it may be a step or two from where another rank failed.
constexpr int64_t kSameStep = 2;

std::string Exit(int code) {
  return code > 128 ? "signal " + std::to_string(code - 128) : "exit code " + std::to_string(code);
}

}  // namespace

int64_t CameTo(const LifeStory& story) {
  if (story.last_saved_step) return *story.last_saved_step;
  const auto restored = names::ParseAttempt(story.restored);
  return restored ? restored->step : 0;
}

StepVerdict Judge::Rule(const EndedLife& life) {
  const std::string end = life.story ? life.story->end : "";
  const std::string code = "srun ended with " + Exit(life.exit_code);
  if (end == "resize" && !life.told_to_end) return Restart("resize " + life.story->why);
  if (life.exit_code == 0) return {Kind::kDone, "the program has ended"};
  const bool slurm_ends_it = life.job && life.job->state != "RUNNING";
  if (life.told_to_end && !slurm_ends_it) return {Kind::kStop, "told to end"};
  if (!life.job) return {Kind::kAskAgain, "Slurm does not say how the job stands"};
  const JobRecord& job = *life.job;
  if (slurm_ends_it) return {Kind::kOver, "the job is " + job.state};
  if (job.preempt_time) return {Kind::kAskAgain, "the job is preempted, and its grace time runs"};
  if (end == "cancelled" || end == "time limit") return {Kind::kOver, end};
  if (end == "interrupted") return {Kind::kStop, end};
  if (end == "unknown")
    return {Kind::kStop, "its ranks got a SIGTERM that is not Slurm's: somebody ended the step"};
  if (end == "finished" || end == "finalized")
    return {Kind::kStop, "the run has come to its end, yet " + code};
  if (job.node_list != life.began_on)
    return Restart("the job's nodes are " + job.node_list + " now, not " + life.began_on);
  if (end == "preempted" || end == "requeued") return Restart(end + ", but the job has its nodes");
  return OnFailure(life);
}

StepVerdict Judge::OnFailure(const EndedLife& life) {
  const std::string code = "srun ended with " + Exit(life.exit_code);
  Failure failure;
  failure.opened = life.story.has_value();
  if (life.story) {
    failure.came_to = CameTo(*life.story);
    failure.end_step = life.story->end_step;
  }
  const std::string what = !life.story ? "no rank opened a session; " + code
                           : life.story->why.empty()
                               ? code
                               : life.story->end + " (" + life.story->why + "); " + code;
  unopened_ = failure.opened ? 0 : unopened_ + 1;
  const std::optional<Failure> last = std::exchange(last_failure_, failure);
  if (unopened_ >= kMaxUnopened)
    return {Kind::kStop, what + "; that was so " + std::to_string(unopened_) + " times in a row"};
  const std::string why_not = last ? WhyNotAgain(*last, failure) : "";
  if (!why_not.empty()) return {Kind::kStop, what + "; " + why_not};
  const int failures = failures_ + 1;
  StepVerdict verdict = Restart(what);
  failures_ = failures;
  last_failure_ = failure;
  verdict.pause = std::min(seconds(1) * (1 << std::min(failures - 1, 6)), kMaxPause);
  return verdict;
}

std::string Judge::WhyNotAgain(const Failure& last, const Failure& now) {
  if (!last.opened || !now.opened || last.came_to != now.came_to) return "";
  if (!last.end_step || !now.end_step) return "it has failed twice in a row without a checkpoint in between";
  return std::llabs(*last.end_step - *now.end_step) <= kSameStep ? "it has failed twice at the same step"
                                                                 : "";
}

StepVerdict Judge::Restart(std::string why) {
  failures_ = 0;
  last_failure_.reset();
  if (lives_ >= max_lives_) {
    return {Kind::kStop, why + "; that was life " + std::to_string(lives_) + " of at most " +
                             std::to_string(max_lives_) + " (--max-lives)"};
  }
  ++lives_;
  return {Kind::kRestart, std::move(why)};
}

}  // namespace cairn
