// JobRecord: what `scontrol show job -o` and `scontrol show partition -o` say, as values. Pure.
//
// scontrol is run with TZ=UTC and without SLURM_TIME_FORMAT (command.h), so its times are UTC.
#ifndef CAIRN_RUNTIME_SLURM_JOB_RECORD_H_
#define CAIRN_RUNTIME_SLURM_JOB_RECORD_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

struct JobRecord {
  uint32_t job_id = 0;
  std::optional<uint32_t> array_job_id, array_task_id;
  std::optional<uint32_t> het_job_id, het_job_offset;
  std::string name, user;     // user without the uid
  std::string state, reason;  // "RUNNING", "None": as Slurm spells them, without the flags of running jobs
  std::string partition, node_list, batch_host, work_dir, exit_code;
  std::string account, qos;  // "" = none
  std::string memory_per_node,
      memory_per_cpu;                 // "4G", as asked for; "0" = all that a node has. At most one is there
  int nodes = 0, cpus = 0, gpus = 0;  // allocated; 0 while the job is pending
  int tasks = 0;                      // that it was submitted for
  int restarts = 0;
  bool requeue = false;  // Requeue=1
  bool batch = false;    // BatchFlag ≠ 0: only such jobs can be requeued
  std::optional<int64_t> start_time, end_time, preempt_time;  // Unix seconds; nothing for Unknown, None, N/A
  std::optional<std::chrono::seconds> time_limit;             // nothing for UNLIMITED
};

// One line of -o output. Of several (a heterogeneous job's components) that of `job_id` is taken. kNotFound:
// it is not there; kInvalid: no job's record.
Result<JobRecord> ParseJobRecord(std::string_view text, uint32_t job_id);

struct PartitionRecord {
  std::string name;
  std::chrono::seconds grace_time{0};
  std::string preempt_mode;  // "REQUEUE", "CANCEL", …; "" where it is not told
};
Result<PartitionRecord> ParsePartitionRecord(std::string_view text);

// KillWait of `scontrol show config`; Slurm's default of 30 s when it is not told.
std::chrono::seconds ParseKillWait(std::string_view config);

// The release in it, 2411 for 24.11.5; 0 when it is not told.
int ParseSlurmRelease(std::string_view config);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_JOB_RECORD_H_
