// Judge: whether a life that has ended is followed by another one. Pure. The rows are tried in this order.
//
//   what is seen                                              verdict
//   the journal says that it made room for a resize, and
//     `cairn run` was not told to end                         kRestart
//   srun ended with 0                                         kDone
//   `cairn run` was told to end, and not by Slurm, which tells
//     all processes of a job that it ends                     kStop
//   Slurm does not answer                                     kAskAgain
//   the job is not RUNNING any more (cancelled, requeued,
//     its limit reached)                                      kOver
//   PreemptTime is set: its grace time runs                   kAskAgain, until that is over
//   the journal says cancelled, or time limit                 kOver
//   the journal says interrupted, or SIGTERM of unknown cause:
//     somebody ended the step on purpose                      kStop
//   the journal says that the run had come to its end before
//     the program failed                                      kStop
//   the job's nodes are others than those it began with       kRestart
//   the journal says preempted or requeued                    kRestart
//   otherwise it has failed: a rank was lost, or the program
//     left with an error
//       no rank opened a session, kMaxUnopened times in a row kStop
//       the second in a row at the same step, or at steps of
//         which one is not known (all ranks were killed at
//         once), with no newer checkpoint between them        kStop
//       otherwise                                             kRestart, after a pause that doubles
//   any kRestart beyond the limit of lives                    kStop
#ifndef CAIRN_RUNTIME_SUPERVISOR_JUDGE_H_
#define CAIRN_RUNTIME_SUPERVISOR_JUDGE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/catalog/lives.h"
#include "runtime/slurm/job_record.h"

namespace cairn {

struct EndedLife {
  int exit_code = 0;               // srun's; 128 + N for signal N
  bool told_to_end = false;        // `cairn run` got a SIGTERM, or was interrupted for good
  std::string began_on;            // node_list of the job's record then
  std::optional<JobRecord> job;    // now; nothing = Slurm does not answer
  std::optional<LifeStory> story;  // nothing = no rank has opened a session
};

struct StepVerdict {
  enum class Kind : uint8_t {
    kDone,      // the program has ended
    kOver,      // Slurm ends the job
    kRestart,   // after the pause
    kAskAgain,  // later: it is not clear yet
    kStop,      // another step would cure nothing
  } kind = Kind::kStop;
  std::string why;  // what ended the life, or what stops the run
  std::chrono::seconds pause{0};
};

class Judge {
 public:
  explicit Judge(int max_lives) : max_lives_(max_lives) {}

  // Of a life for which it says kAskAgain it may be asked again.
  StepVerdict Rule(const EndedLife& life);

 private:
  struct Failure {
    bool opened = false;
    int64_t came_to = 0;              // step of the newest checkpoint
    std::optional<int64_t> end_step;  // not known where all ranks were killed at once
  };
  StepVerdict Restart(std::string why);
  StepVerdict OnFailure(const EndedLife& life);
  static std::string WhyNotAgain(const Failure& last,
                                 const Failure& now);  // "" = another life may come further

  const int max_lives_;
  int lives_ = 1;
  int failures_ = 0;  // in a row
  int unopened_ = 0;  // likewise
  std::optional<Failure> last_failure_;
};

// The step of the newest checkpoint that the life left behind; 0 = none.
int64_t CameTo(const LifeStory& story);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_JUDGE_H_
