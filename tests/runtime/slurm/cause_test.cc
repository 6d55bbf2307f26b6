#include "runtime/slurm/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

// Now is 07:16:25 (1796022985) throughout; this life is the job's second (Restarts=1); the grace time is 25 s, KillWait 10 s.
constexpr int64_t kNow = 1796022985;
constexpr int64_t kAt71645 = 1796023005;

struct Row {
  const char* name;
  const char* record;  // the fields that matter, as scontrol prints them
  const char* preempt_mode;
  Cause cause;
  std::optional<int64_t> deadline;
  bool may_requeue;
};

const Row kRows[] = {
    {"preempted, grace running",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kPreempted, kAt71645, true},
    {"preempted, the grace time's signal still on its way to other nodes",
     "JobId=5 JobState=SIGNALING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kPreempted, kAt71645, true},
    {"preempted, without a time limit",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=Unknown "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kPreempted, kAt71645, true},
    {"preempted, EndTime not rewritten yet",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T09:00:00 "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kPreempted, kAt71645, true},
    {"preempted, grace over but not killed yet",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:15 "
     "PreemptTime=2026-11-30T07:15:50",
     "REQUEUE", Cause::kPreempted, kNow, true},
    {"preempted with --no-requeue",
     "JobId=5 JobState=RUNNING Reason=None Requeue=0 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kPreempted, kAt71645, false},
    {"preempted in an salloc",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=0 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kPreempted, kAt71645, false},
    {"preempted where PreemptMode=CANCEL",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=2026-11-30T07:16:20",
     "CANCEL", Cause::kPreempted, kAt71645, false},
    {"grace over where PreemptMode=CANCEL",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=1 "
     "PreemptTime=2026-11-30T07:15:50",
     "CANCEL", Cause::kPreempted, kNow + 10, false},
    {"grace over in an salloc",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=0 EndTime=2026-11-30T07:16:25 "
     "PreemptTime=2026-11-30T07:16:00",
     "REQUEUE", Cause::kPreempted, kNow + 10, false},
    {"grace over with --no-requeue",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=0 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:25 "
     "PreemptTime=2026-11-30T07:16:00",
     "REQUEUE", Cause::kPreempted, kNow + 10, false},
    {"cancelled in the grace time of an salloc",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=0 EndTime=2026-11-30T07:16:24 "
     "PreemptTime=2026-11-30T07:16:00",
     "REQUEUE", Cause::kCancelled, std::nullopt, false},
    {"cancelled in the grace time where PreemptMode=CANCEL",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:24 "
     "PreemptTime=2026-11-30T07:16:00",
     "CANCEL", Cause::kCancelled, std::nullopt, false},
    {"grace over, requeued", "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=2 BatchFlag=1",
     "REQUEUE", Cause::kRequeued, kNow + 10, false},
    {"scontrol requeue",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=2 BatchFlag=1 EndTime=2026-11-30T07:16:25",
     "REQUEUE", Cause::kRequeued, kNow + 10, false},
    {"time limit reached",
     "JobId=5 JobState=COMPLETING Reason=TimeLimit Requeue=1 Restarts=1 BatchFlag=1 "
     "EndTime=2026-11-30T07:16:25 PreemptTime=None",
     "REQUEUE", Cause::kTimeLimit, kNow + 10, true},
    {"time limit near",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=None",
     "REQUEUE", Cause::kTimeLimit, kAt71645, true},
    {"time limit near where PreemptMode=CANCEL",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:45 "
     "PreemptTime=None",
     "CANCEL", Cause::kTimeLimit, kAt71645, true},
    {"scancel",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:25 "
     "PreemptTime=None",
     "REQUEUE", Cause::kCancelled, std::nullopt, false},
    {"scancel during the grace time",
     "JobId=5 JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T07:16:25 "
     "PreemptTime=2026-11-30T07:16:20",
     "REQUEUE", Cause::kCancelled, std::nullopt, false},
    {"cancelled and cleaned up", "JobId=5 JobState=CANCELLED Reason=None Requeue=1 Restarts=1 BatchFlag=1",
     "REQUEUE", Cause::kCancelled, std::nullopt, false},
    {"a plain kill",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=2026-11-30T09:00:00 "
     "PreemptTime=None",
     "REQUEUE", Cause::kUnknown, 1796029200, false},
    {"a plain kill without a time limit",
     "JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 EndTime=Unknown PreemptTime=None",
     "REQUEUE", Cause::kUnknown, std::nullopt, false},
};

TEST(ClassifyCause, TellsTheCausesApart) {
  for (const Row& row : kRows) {
    const auto record = ParseJobRecord(row.record, 5);
    ASSERT_TRUE(record.ok()) << row.name;
    CauseContext context;
    context.our_restart = 1;
    context.now = kNow;
    context.notice = std::chrono::seconds(30);
    context.kill_wait = std::chrono::seconds(10);
    context.partition = PartitionRecord{"low", std::chrono::seconds(25), row.preempt_mode};
    const CauseReport report = ClassifyCause(&*record, context);
    EXPECT_EQ(CauseName(report.cause), CauseName(row.cause)) << row.name;
    EXPECT_EQ(report.deadline, row.deadline) << row.name;
    EXPECT_EQ(report.may_requeue, row.may_requeue) << row.name;
    EXPECT_FALSE(report.why.empty()) << row.name;
  }
}

TEST(ClassifyCause, KnowsNothingWithoutARecord) {
  const CauseReport report = ClassifyCause(nullptr, {});
  EXPECT_EQ(report.cause, Cause::kUnknown);
  EXPECT_FALSE(report.deadline.has_value());
  EXPECT_FALSE(report.may_requeue);
}

TEST(ClassifyCause, SaysWhyThereWillBeNoRequeue) {
  const auto record = ParseJobRecord(
      "JobId=5 JobState=RUNNING Requeue=0 Restarts=0 BatchFlag=1 PreemptTime=2026-11-30T07:16:20", 5);
  EXPECT_THAT(ClassifyCause(&*record, {}).why, testing::HasSubstr("--no-requeue"));
}

}  // namespace
}  // namespace cairn
