# The durable directory: whose it is, and what happens when it cannot be written.
load helpers

readonly plate='--nx 96 --ny 64'

@test "6: a directory in use by a live job is refused to another one, naming the holder" {
  local holder
  holder=$(submit_heat2d --nodes=2 --checkpoint --checkpoint-dir=run -- $plate --steps 100000 --step-ms 20)
  wait_for 60 heat2d_is_past 1
  run as_user srun --nodes=2 --mpi=pmix --checkpoint --checkpoint-dir="$T/run" "$heat2d" $plate --steps 10
  ((status != 0))
  [[ $output == *"$T/run is in use by job $holder, step 0"*"give this one another --checkpoint-dir"* && $output != *"from step"* ]]
  job_is "$holder" RUNNING
}

@test "6: a directory in use by a step is refused to a second step of the same job, naming the holder" {
  local job
  job=$(submit two --nodes=4 --checkpoint --checkpoint-dir=run <<SCRIPT
#!/bin/bash
srun --nodes=2 --ntasks=2 --mpi=pmix $heat2d --log heat2d.log $plate --steps 100000 --step-ms 20 &
until [[ -s heat2d.log ]]; do sleep 0.1; done
srun --nodes=2 --ntasks=2 --output=second.out $toy --steps 10
echo "status \$?" >>second.out
scancel \$SLURM_JOB_ID
SCRIPT
  )
  wait_for 60 job_has_ended "$job"
  grep "$T/run is in use by job $job, step 0" "$T/second.out"
  run ! grep -q -e resumed -e 'status 0' "$T/second.out"
}

@test "6: tasks of an array with one directory get their own" {
  local array task options="$plate --steps 20"
  array=$(submit array --array=0-1 --nodes=2 --output=array.%a.out --checkpoint --checkpoint-dir=runs <<SCRIPT
#!/bin/bash
srun --mpi=pmix $heat2d $options
SCRIPT
  )
  for task in 0 1; do
    wait_for 60 job_has_ended "${array}_$task"
    [[ $(committed_step "$T/runs/task-$task") == 20 ]]
    grep -q "hash $(undisturbed_hash $options)$" "$T/array.$task.out"
  done
}

# How often heat2d.out tells of a failed save, and how many attempts the journal knows of.
failures() { grep -c '^cairn: no save (request)' "$T/heat2d.out"; }
failed() { (($(failures) >= $1)); }

# ask_for_save JOB: by the signal that the job was submitted with.
ask_for_save() { as_user scancel --signal=USR1 "$1"; }

# checksums DIR: of all files of its committed checkpoints.
checksums() { (cd "$1" && find step-* -type f -print0 | sort -z | xargs -0 sha256sum); }

@test "7: a job whose directory cannot be written goes on to the same hash, says so once per attempt, and old checkpoints stay" {
  local job before n options="$plate --steps 500"
  job=$(submit_heat2d --nodes=2 --checkpoint --checkpoint-dir=run --checkpoint-signal=USR1 --checkpoint-on=request -- $options --step-ms 100)
  wait_for 60 heat2d_is_past 2
  ask_for_save "$job"
  wait_for 60 committed_step "$T/run"
  before=$(checksums "$T/run")
  as_user chmod 555 run
  for n in 1 2; do
    ask_for_save "$job"
    wait_for 60 failed $n
  done
  hurry
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(failures) == 2 ]]
  grep -q "^cairn: no save (request): .*mkdir $T/run/step-.*: Permission denied.*The job goes on" "$T/heat2d.out"
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
  [[ $(checksums "$T/run") == "$before" ]]
  as_user chmod 755 run
}

@test "7: a job that begins with a directory that cannot be written goes on to the same hash and says so" {
  local job options="$plate --steps 100 --step-ms 20"
  as_user mkdir -m 555 run
  job=$(submit_heat2d --nodes=2 --checkpoint --checkpoint-dir=run -- $options)
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  grep -q "^cairn: NOT PROTECTED for now: .*$T/run.*: Permission denied" "$T/heat2d.out"
  [[ $(grep -c '^cairn: no save (end)' "$T/heat2d.out") == 1 ]]
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
}

@test "7: a job whose 64 MiB file system is full goes on to the same hash, says so once per attempt, and old checkpoints stay" {
  local job before n options='--nx 1024 --ny 1024 --steps 100'
  as_user mkdir run
  as_root mount -t tmpfs -o "size=64m,uid=$(id -u "$cluster_user"),mode=755" tmpfs "$T/run"
  job=$(submit_heat2d --nodes=2 --checkpoint --checkpoint-dir=run --checkpoint-signal=USR1 --checkpoint-on=request -- $options --step-ms 300)
  wait_for 60 heat2d_is_past 1
  ask_for_save "$job"
  wait_for 60 committed_step "$T/run"
  as_user dd if=/dev/zero of=run/full bs=1M status=none || true
  before=$(checksums "$T/run")
  for n in 1 2; do
    ask_for_save "$job"
    wait_for 60 failed $n
  done
  hurry
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(failures) == 2 ]]
  grep -q "^cairn: no save (request): .*$T/run/.*No space left on device.*The job goes on" "$T/heat2d.out"
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
  [[ $(checksums "$T/run") == "$before" ]]
}
