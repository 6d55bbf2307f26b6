# --checkpoint-copy: a second place for checkpoints, from which a job goes on.
load helpers

# Steps that are committed in a directory, in order.
steps_in() { committed "$1" | sed 's/step-0*\([0-9]*\)\..*/\1/' | sort -n; }
has_copy_past() { (($(steps_in "$T/archive/run" | tail -n 1) > $1)); }

@test "a job copies its checkpoints beside it, over a preemption, and a new job resumes from the copies alone" {
  local job high saved options='--nx 101 --ny 67 --steps 600'
  job=$(submit_heat2d --nodes=2 --checkpoint=10steps --checkpoint-dir="$T/run" --checkpoint-copy="$T/archive/run" -- $options --step-ms 50)
  wait_for 60 has_copy_past 0
  high=$(preempt_job "$job" 4)
  saved=$(steps_in "$T/run" | tail -n 1)
  as_root scancel "$high"
  lift_hold "$job"
  wait_for 60 has_copy_past $((saved - 1))  # by the life after
  as_root scancel "$job"
  wait_for 60 job_has_ended "$job"
  as_user rm -r run heat2d.log
  hurry
  job=$(submit_heat2d --nodes=2 --checkpoint --checkpoint-dir="$T/archive/run" -- $options --step-ms 50)
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  (($(heat2d_start 0 step) >= saved))
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
}
