# Jobs that are cancelled, and programs that never open a session.
load helpers

# Whoever is gone before the cluster's KillWait did not wait for SIGKILL; it is long, so that slow machines are not mistaken for one who waits.
readonly promptly=25
setup_file() { KILLWAIT=30 "$devcluster" up; }
teardown_file() { "$devcluster" up; }

# cancel JOB: scancel, within the usual time.
cancel() {
  as_user scancel "$@"
  wait_for $promptly cluster_is_idle
}

# stays_cancelled JOB: with the job's last process, its host process, whatever could requeue it is gone.
stays_cancelled() {
  wait_for 60 no_host_process "$1"
  job_is "$1" CANCELLED && [[ $(job_field "$1" Restarts) == 0 ]]
}

readonly endless='--nx 96 --ny 64 --steps 100000 --step-ms 20'

@test "5: a job that is cancelled before its first save stays cancelled, all launchers of its ranks too, and nothing is saved" {
  local job mpi name
  launchers
  job=$(submit cancelled --nodes=2 --ntasks="${#launched[@]}" --checkpoint --checkpoint-dir=run \
    <<<$'#!/bin/bash\n'"srun --mpi=pmix ./launch $heat2d --log heat2d.log $endless")
  mpi=$(submit mpi --nodes=2 --checkpoint --checkpoint-dir=run.mpi <<<$'#!/bin/bash\n'"mpirun -n 2 $heat2d --log mpi.log $endless")
  wait_for 60 heat2d_is_past 5
  wait_for 60 grep -qs ' step=5$' "$T/mpi.log"
  cancel "$job" "$mpi"
  for name in "$job" "$mpi"; do stays_cancelled "$name"; done
  grep -q '^cairn: cancelled: no save' "$T/cancelled.out"
  run ! compgen -G "$T/run*/step-*"
  for name in "${launched[@]}" mpirun; do launcher_is "$name" scancel 'ends at once'; done
}

@test "5: a job that is cancelled in the middle of a save stays cancelled, and that save is dropped" {
  local job
  hold_saves
  job=$(submit_heat2d --nodes=3 --export="ALL,$(slow_io 0)" --checkpoint=10steps --checkpoint-dir=run -- $endless)
  wait_for 60 has_attempt "$T/run"
  cancel "$job"
  stays_cancelled "$job"
  run ! committed_step "$T/run"
}

@test "5: a job that is cancelled after a save stays cancelled, and a new job resumes from that save" {
  local job saved
  job=$(submit_heat2d --nodes=3 --checkpoint --checkpoint-on=request --checkpoint-dir=run --checkpoint-signal=USR1 -- $endless)
  wait_for 60 heat2d_is_past 5
  as_user scancel --signal=USR1 "$job"
  wait_for 60 committed_step "$T/run"
  saved=$(committed_step "$T/run")
  wait_for 60 heat2d_is_past $((saved + 5))
  cancel "$job"
  stays_cancelled "$job"
  [[ $(committed_step "$T/run") == "$saved" ]]
  job=$(submit_heat2d --nodes=2 --checkpoint --checkpoint-dir=run -- $endless)
  wait_for 60 grep -q "^life=0 start step=$saved nodes=" "$T/heat2d.log"
}

begins() { (($(grep -cs ' start step=' "$T/$1.log") > $2)); }

@test "the ranks of a job whose leader is killed do not wait for SIGKILL: srun -K1 ends, and cairn run begins the next life" {
  local plain elastic start
  plain=$(submit plain --nodes=2 <<<$'#!/bin/bash\n'"srun -K1 --mpi=pmix --checkpoint --checkpoint-dir=plain $heat2d --log plain.log $endless")
  elastic=$(submit elastic --nodes=2 <<<$'#!/bin/bash\n'"cairn run -- srun --mpi=pmix --checkpoint=5steps --checkpoint-dir=run $heat2d --log elastic.log $endless")
  wait_for 60 begins plain 0
  wait_for 60 has_committed "$T/run"
  start=${EPOCHREALTIME/./}
  as_root kill -KILL "$(task_pid "$plain" 0)"
  as_root kill -KILL "$(task_pid "$elastic" 0)"
  wait_for $promptly begins elastic 1
  echo "cairn run: another life after $(((${EPOCHREALTIME/./} - start) / 1000)) ms" >&3
  wait_for $promptly job_has_ended "$plain"
  grep -q '^cairn: .*rank 0 is gone: .*; this life makes no more saves' "$T/plain.out"
  grep -q '^cairn: the ranks ended without cairn_finalize, so the run is not finished. To resume, ' "$T/plain.out"
  grep -qP ' start step=[1-9]' "$T/elastic.log"
}

step_runs() { [[ $(squeue --noheader --steps --job="$1" --format=%j) == *sleep* ]]; }

@test "9: a program that opens no session is said to be NOT PROTECTED, and is cancelled as fast as without Cairn" {
  local job checkpoint start took=()
  for checkpoint in off on; do
    job=$(submit "$checkpoint" --nodes=2 --export=ALL,CAIRN_OPEN_WITHIN=1s <<<$'#!/bin/bash\nsrun --checkpoint='$checkpoint' sleep 1000')
    wait_for 60 step_runs "$job"
    if [[ $checkpoint == on ]]; then
      wait_for 60 grep -q '^cairn: NOT PROTECTED: no rank has opened a session within 1.0 s' "$T/on.out"
    fi
    start=${EPOCHREALTIME/./}
    cancel "$job"
    took+=($(((${EPOCHREALTIME/./} - start) / 1000)))
    stays_cancelled "$job"
  done
  echo "without Cairn ${took[0]} ms, with it ${took[1]} ms"
  ((took[1] < took[0] + 5000))
}

# As somebody at a terminal presses it, twice within a second.
ctrl_c() {
  local pid
  pid=$(cat "$T/srun.pid")
  as_root kill -INT "$pid"
  wait_for 60 grep -q 'srun: interrupt (one more within 1 sec to abort)' "$T/srun.out"
  as_root kill -INT "$pid"
}

@test "Ctrl-C in srun ends the job at once without a save, and the journal tells of it" {
  as_user bash -c "echo \$\$ >srun.pid
    exec srun --mpi=pmix --nodes=2 --checkpoint --checkpoint-dir=run $heat2d --log heat2d.log $endless >srun.out 2>&1" &
  wait_for 60 heat2d_is_past 5
  ctrl_c
  wait_for 60 cluster_is_idle
  [[ -z $(committed_step "$T/run") ]]
  wait_for 60 eval 'as_user cairn why run | grep -q "end: interrupted"'
}
