#include "runtime/supervisor/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::HasSubstr;
using Kind = StepVerdict::Kind;
using std::chrono::seconds;

JobRecord Running() {
  JobRecord job;
  job.state = "RUNNING";
  job.node_list = "n[1-4]";
  return job;
}

// On n[1-4], of a running job; srun was left by a rank's SIGKILL.
EndedLife Life(const std::string& end, int exit_code = 137) {
  EndedLife life{.exit_code = exit_code, .began_on = "n[1-4]", .job = Running(), .story = LifeStory{}};
  life.story->end = end;
  return life;
}

EndedLife Lost(int64_t saved_step, std::optional<int64_t> end_step) {
  EndedLife life = Life("rank lost");
  if (saved_step > 0) life.story->last_saved_step = saved_step;
  life.story->end_step = end_step;
  return life;
}

Kind Rule(const EndedLife& life) { return Judge(100).Rule(life).kind; }

TEST(Judge, IsDoneWhenTheProgramHasEnded) {
  EXPECT_EQ(Rule(Life("finished", 0)), Kind::kDone);
  EXPECT_EQ(Rule(Life("", 0)), Kind::kDone);
}

TEST(Judge, StartsAgainAfterAResizeALostRankAndOtherNodes) {
  EXPECT_EQ(Rule(Life("resize", 143)), Kind::kRestart);
  EXPECT_EQ(Rule(Life("rank lost")), Kind::kRestart);
  EXPECT_EQ(Rule(Life("")), Kind::kRestart);  // all were killed at once
  EndedLife moved = Life("unopened");
  moved.story.reset();
  moved.job->node_list = "n[1-3]";
  const StepVerdict verdict = Judge(100).Rule(moved);
  EXPECT_EQ(verdict.kind, Kind::kRestart);
  EXPECT_EQ(verdict.pause, seconds(0));
  EXPECT_EQ(verdict.why, "the job's nodes are n[1-3] now, not n[1-4]");
}

TEST(Judge, StopsWhenSomebodyWantsTheEnd) {
  EndedLife told = Life("resize", 143);
  told.told_to_end = true;
  EXPECT_EQ(Rule(told), Kind::kStop);
  EXPECT_EQ(Rule(Life("unknown", 143)), Kind::kStop);  // scancel of the step
  EXPECT_EQ(Rule(Life("interrupted", 130)), Kind::kStop);
  EXPECT_EQ(Rule(Life("cancelled", 143)), Kind::kOver);
  EXPECT_EQ(Rule(Life("time limit", 143)), Kind::kOver);
  EndedLife completing = Life("rank lost");
  completing.job->state = "COMPLETING";
  EXPECT_EQ(Rule(completing), Kind::kOver);
  completing.told_to_end = true;  // Slurm tells all processes of a job that it ends
  EXPECT_EQ(Rule(completing), Kind::kOver);
}

TEST(Judge, WaitsForTheEndOfAGraceTimeAndForASilentSlurm) {
  EndedLife preempted = Life("preempted");
  preempted.job->preempt_time = 1796022980;
  EXPECT_EQ(Rule(preempted), Kind::kAskAgain);
  preempted.job->preempt_time.reset();  // the job is still there when it is over
  EXPECT_EQ(Rule(preempted), Kind::kRestart);
  EndedLife silent = Life("rank lost");
  silent.job.reset();
  EXPECT_EQ(Rule(silent), Kind::kAskAgain);
}

TEST(Judge, DoesNotRunAFinishedProgramAgainForItsExitCode) {
  EXPECT_EQ(Rule(Life("finished", 3)), Kind::kStop);
  EXPECT_EQ(Rule(Life("finalized", 3)), Kind::kStop);
}

TEST(Judge, StopsAtTheSecondFailureAtOneStep) {
  Judge judge(100);
  EXPECT_EQ(judge.Rule(Lost(50, 57)).kind, Kind::kRestart);
  EndedLife again = Lost(0, 58);
  again.story->restored = "step-000000000050.e1.1f00c2d9";
  const StepVerdict verdict = judge.Rule(again);
  EXPECT_EQ(verdict.kind, Kind::kStop);
  EXPECT_THAT(verdict.why, HasSubstr("failed twice at the same step"));
}

TEST(Judge, StopsWhenTwoLivesInARowAreKilledBeforeTheirFirstSave) {
  Judge judge(100);
  EXPECT_EQ(judge.Rule(Lost(0, std::nullopt)).kind, Kind::kRestart);
  const StepVerdict verdict = judge.Rule(Lost(0, std::nullopt));
  EXPECT_EQ(verdict.kind, Kind::kStop);
  EXPECT_THAT(verdict.why, HasSubstr("failed twice in a row without a checkpoint in between"));
}

TEST(Judge, GoesOnWhileFailuresMoveAndPausesLonger) {
  Judge judge(100);
  EXPECT_EQ(judge.Rule(Lost(50, 57)).pause, seconds(1));
  EXPECT_EQ(judge.Rule(Lost(60, 62)).pause, seconds(2));
  EXPECT_EQ(judge.Rule(Lost(60, 90)).pause, seconds(4));  // the same checkpoint, but another step
  EXPECT_EQ(judge.Rule(Life("resize", 143)).pause, seconds(0));
  EXPECT_EQ(judge.Rule(Lost(60, 90)).pause, seconds(1));
}

TEST(Judge, GivesUpOnStepsThatNeverBegin) {
  Judge judge(100);
  EndedLife life = Life("", 1);
  life.story.reset();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(judge.Rule(life).kind, Kind::kRestart) << i;
  EXPECT_EQ(judge.Rule(life).kind, Kind::kStop);
}

TEST(Judge, KnowsTheLimitOfLives) {
  Judge judge(2);
  EXPECT_EQ(judge.Rule(Life("resize", 143)).kind, Kind::kRestart);
  const StepVerdict verdict = judge.Rule(Life("resize", 143));
  EXPECT_EQ(verdict.kind, Kind::kStop);
  EXPECT_THAT(verdict.why, HasSubstr("life 2 of at most 2"));
}

}  // namespace
}  // namespace cairn
