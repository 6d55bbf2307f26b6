# Jobs that change their size, or lose a rank or a node, under `cairn run`: they go on in the same allocation to the hash of a run that nobody
# disturbed.
load helpers

readonly plate='--nx 96 --ny 64'

# [name=NAME] elastic "SBATCH OPTIONS" "RUN OPTIONS" "SRUN OPTIONS" [HEAT2D OPTION …]: heat2d under `cairn run`, slowly until `hurry`. Output:
# $T/NAME.out and $T/NAME.log (heat2d)
elastic() {
  local sbatch=$1 run=$2 srun=$3 name=${name:-heat2d}
  shift 3
  submit "$name" $sbatch <<SCRIPT
#!/bin/bash
cairn run $run -- srun --mpi=pmix $srun $heat2d --log $name.log --step-ms 100 --hurry hurry $*
status=\$?
echo "cairn run: status \$status"
exit \$status
SCRIPT
}

lives_of() { grep -c ' start step=' "$T/heat2d.log"; }
starts_at() { grep -oP ' start step=\K\d+' "$T/heat2d.log" | sed -n "$(($1 + 1))p"; }
ranks_of() { grep -oP ' start .* ranks=\K.*' "$T/heat2d.log" | sed -n "$(($1 + 1))p"; }
begins() { (($(lives_of) > $1)); }
has_saved() { compgen -G "$T/run/step-*.e$(($1 + 1)).*/manifest.json" >/dev/null; }
said() { grep -q "^cairn: $1" "$T/heat2d.out"; }

# ends_well JOB LAST OPTIONS: the job completes with the hash of an undisturbed run, having made all steps.
ends_well() {
  local job=$1 last=$2 lost
  shift 2
  hurry
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(heat2d_hash) == "$(undisturbed_hash $*)" ]]
  lost=$(steps_lost "$last")
  echo "$lost steps were lost; ran again after $(ran_again "$(find "$T" -name journal.jsonl -not -path '*/hanging/*')")" >&3
}

@test "shrink: cairn resize takes a job from four nodes to two, and it goes on from the save that was made for it" {
  local job options="$plate --steps 500"
  job=$(elastic --nodes=4 '' '--checkpoint-dir=run --checkpoint-on=request,end' $options)
  wait_for 60 heat2d_is_past 4
  run -1 as_user cairn resize "$job" --nodes=n[3-4]
  [[ $output == *"n1 cannot go: the batch script runs on it"* ]]
  run -0 as_user cairn resize "$job" 2 --dry-run
  [[ $output == *"4 nodes (n[1-4]) → 2, in place; n3, n4 go"* && $(job_field "$job" NumNodes) == 4 ]]
  run -0 as_user cairn resize "$job" --nodes=n1,n4
  [[ $output == *"job $job has n[1,4] now"*"resumed  from step "*" on 2 ranks"* ]]
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 0) == 4 && $(ranks_of 1) == 2 ]]
  said "life 0 (step $job.0, 4 tasks on 4 nodes) ended: resize to n1,n4; it came to step .*; life 1 follows"
}

jobs_are() { [[ $(squeue --noheader --format=%A | wc -l) == "$1" ]]; }

@test "grow: cairn resize takes a job from two nodes to four, which it waits for while the job goes on" {
  local job options="$plate --steps 500"
  job=$(elastic --nodes=2 '' '--checkpoint-dir=run --checkpoint-on=request,end' $options)
  wait_for 60 heat2d_is_past 4
  run -1 as_user cairn resize "$job" 6 --timeout 1s
  [[ $output == *"nothing was changed: within 1.0 s Slurm has not given the job 4 more nodes"* ]]
  wait_for 60 jobs_are 1
  as_user sh -c 'echo $$ >pid; exec cairn resize "$0" 6' "$job" >/dev/null 2>&1 3>&- &
  wait_for 60 jobs_are 2
  as_root kill -KILL "$(<"$T/pid")"
  wait_for 60 jobs_are 1
  run -0 as_user cairn resize "$job" 4
  [[ $output == *"job $job has n[1-4] now"*"resumed  from step "*" on 4 ranks"* ]]
  wait_for 60 jobs_are 1
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 0) == 2 && $(ranks_of 1) == 4 ]]
}

@test "grow: a job that has grown grows once more, with two tasks on each node" {
  local job options="$plate --steps 500"
  job=$(elastic --nodes=1 --tasks-per-node=2 '--checkpoint-dir=run --checkpoint-on=request' $options)
  wait_for 60 heat2d_is_past 4
  run -0 as_user cairn resize "$job" 2
  run -0 as_user cairn resize "$job" 4
  [[ $output == *"job $job has n[1-4] now"*"resumed  from step "*" on 8 ranks"* ]]
  ends_well "$job" 500 $options
  [[ $(lives_of) == 3 && $(ranks_of 0) == 2 && $(ranks_of 1) == 4 && $(ranks_of 2) == 8 ]]
}

@test "shrink: a resize that is asked for while a save is written waits for that save, and has its own" {
  local job options="$plate --steps 500"
  job=$(elastic "--nodes=4 --export=ALL,$(slow_io 100)" '' '--checkpoint-dir=run --checkpoint-on=request' $options)
  wait_for 60 heat2d_is_past 4
  as_user cairn save run >/dev/null 3>&- &
  wait_for 60 has_attempt "$T/run"
  run -0 as_user cairn resize "$job" 1
  [[ $output == *"job $job has n1 now"*"resumed  from step "*" on 1 rank"* ]]
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 0) == 4 && $(ranks_of 1) == 1 && $(grep -c 'cairn: saved step .* (request)' "$T/heat2d.out") == 2 ]]
}

@test "shrink: a job that is cancelled while it saves for a resize stays cancelled, and cairn resize says that nothing was changed" {
  local job resize status=0
  hold_saves
  job=$(elastic "--nodes=2 --export=ALL,$(slow_io 0)" '' '--checkpoint-dir=run --checkpoint-on=request' $plate --steps 100000)
  wait_for 60 heat2d_is_past 4
  as_user cairn resize "$job" 1 >"$BATS_TEST_TMPDIR/resize" 2>&1 3>&- &
  resize=$!
  wait_for 60 has_attempt "$T/run"
  as_user scancel "$job"
  wait "$resize" || status=$?
  cat "$BATS_TEST_TMPDIR/resize"
  ((status == 1))
  wait_for 60 cluster_is_idle
  job_is "$job" CANCELLED
  [[ $(lives_of) == 1 && $(job_field "$job" NumNodes) == 2 && -z $(committed_step "$T/run") ]]
}

@test "shrink: a job that is preempted while it saves for a resize is requeued, and cairn resize says that it was not resized" {
  local job resize status=0 options="$plate --steps 500"
  hold_saves
  job=$(elastic "--nodes=2-4 --export=ALL,$(slow_io 0)" '' '--checkpoint-dir=run --checkpoint-on=request,preempt,end' $options)
  wait_for 60 heat2d_is_past 4
  as_user cairn resize "$job" 2 >"$BATS_TEST_TMPDIR/resize" 2>&1 3>&- &
  resize=$!
  wait_for 60 has_attempt "$T/run"
  submit high --partition=high --nodes=2 <<<$'#!/bin/bash\nexec sleep 600' >/dev/null
  wait_for 60 said 'preempted; '
  release_saves
  wait "$resize" || status=$?
  ((status == 1))
  grep -q '^cairn: the job was not resized: it is ' "$BATS_TEST_TMPDIR/resize"
  lift_hold "$job"
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 1) == 2 && $(job_field "$job" Restarts) == 1 ]]
  said 'life 0 .* ended: the job is [A-Z]*; '
}

@test "shrink: nodes that somebody takes away with scontrol cost the steps since the last save, and the job goes on" {
  local job dir options="$plate --steps 500"
  job=$(elastic --nodes=4 '' --checkpoint=4steps $options)
  dir=$T/cairn-$job/heat2d  # the default: the next life must find it, though it is another step
  wait_for 60 has_committed "$dir"
  as_user scontrol update JobId="$job" NumNodes=1
  wait_for 60 begins 1
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 1) == 1 && $(starts_at 1) -gt 0 ]]
  said "life 0 .* ended: the job's nodes are n1 now, not n\[1-4\]"
}

partners_hold() { grep -qs '"event":"partner"' "$T/run/journal.jsonl"; }

@test "shrink: of a save that is not durable when its nodes are taken away partners have copies; Slurm 22.05 shrinks the job once. loss: a rank that hangs is named by the save that is given up for it" {
  local job resize hanging pid status=0 options="$plate --steps 500"
  hold_saves
  job=$(elastic "--nodes=3 --export=ALL,CAIRN_PARTNER=yes,$(slow_io 0)" '' '--checkpoint-dir=run --checkpoint-on=request' $options)
  wait_for 60 heat2d_is_past 4
  as_user cairn save run >/dev/null 2>&1 3>&- &
  wait_for 60 partners_hold
  wait_for 60 has_attempt "$T/run"
  as_user scontrol update JobId="$job" NumNodes=2
  wait_for 60 said 'life 0 '
  run ! committed_step "$T/run"
  release_saves
  wait_for 60 begins 1
  said 'rescued step '
  [[ $(starts_at 1) == "$(committed_step "$T/run")" && $(ranks_of 1) == 2 ]]
  as_user cairn resize "$job" 1 >"$BATS_TEST_TMPDIR/resize" 2>&1 3>&- &
  resize=$!

  hanging=$(name=hanging elastic '--nodes=1 --export=ALL,CAIRN_SAVE_TIMEOUT=4s' '--tasks-per-node=2' '--checkpoint-dir=hanging --checkpoint-on=request' $options)
  wait_for 60 grep -qs ' step=5$' "$T/hanging.log"
  pid=$(task_pid "$hanging" 1)
  as_root kill -STOP "$pid"
  run -1 as_user cairn save hanging
  as_root kill -CONT "$pid"
  [[ $output == *"time was up while waiting for "*": rank 1;"* ]]
  run -0 as_user cairn save hanging  # it goes on, and so do the saves

  wait_for 60 said 'no resize to 1: .* try again in a bit.*; it goes on with the nodes that the job has'
  wait_for 60 begins 2
  ends_well "$job" 500 $options
  [[ $(lives_of) == 3 && $(ranks_of 2) == 2 ]]
  wait "$resize" || status=$?
  ((status == 1))
  wait_for 60 job_has_ended "$hanging"
  job_is "$hanging" COMPLETED
  [[ $(grep -oP ' hash=\K\w+' "$T/hanging.log") == "$(undisturbed_hash $options)" && $(grep -c ' start step=' "$T/hanging.log") == 1 ]]
}

@test "loss: a rank that is killed, and then the leader, are made good by a new step each" {
  local job rank life=0 options="$plate --steps 500"
  job=$(elastic --nodes=3 '' '--checkpoint-dir=run --checkpoint=4steps' $options)
  for rank in 2 0; do
    wait_for 60 has_saved $life
    as_root kill -KILL "$(task_pid "$job" "$rank")"
    wait_for 60 begins $((++life))
  done
  ends_well "$job" 500 $options
  [[ $(lives_of) == 3 && $(ranks_of 2) == 3 ]]
}

@test "loss: without --no-kill a job whose node dies is requeued, and goes on; also when it was the leader's" {
  local job which node life=0 options="$plate --steps 500"
  job=$(elastic --nodes=2 '' '--checkpoint-dir=run --checkpoint=4steps' $options)
  for which in tail head; do
    wait_for 60 has_saved $life
    node=$(scontrol show hostnames "$(job_field "$job" NodeList)" | $which -n 1)
    kill_node "$job" "$node"
    wait_for 60 job_is "$job" PENDING
    revive_nodes
    lift_hold "$job"
    wait_for 60 begins $((++life))
  done
  ends_well "$job" 500 $options
  [[ $(lives_of) == 3 && $(job_field "$job" Restarts) == 2 ]]
}

@test "loss: with --no-kill a job goes on with the nodes that are left when one dies" {
  local job node options="$plate --steps 500"
  job=$(elastic '--nodes=3 --no-kill' '--min-nodes=2' '--checkpoint-dir=run --checkpoint=4steps' $options)
  wait_for 60 has_committed "$T/run"
  node=$(scontrol show hostnames "$(job_field "$job" NodeList)" | tail -n 1)
  kill_node "$job" "$node"
  wait_for 60 begins 1
  revive_nodes
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 1) == 2 ]]
  said "life 0 .* ended: the job's nodes are .* now"
}

# kill_node JOB NODE: its slurmd and all that this has started for the job. Other clusters of this machine have nodes of that name, too. All of it
# stands still, as a machine without power does, until the controller knows: Slurm 22.05 loses the end of a step whose last tasks end while it is
# told that their node is down, and starts no other.
kill_node() {
  local slurmd stepd environ stepds=() tasks=()
  for stepd in $(pgrep -x slurmstepd); do
    environ=/proc/$(pgrep -P "$stepd" | head -n 1)/environ
    if as_root grep -qzx "SLURM_JOB_ID=$1" "$environ" && as_root grep -qzx "SLURMD_NODENAME=$2" "$environ"; then
      stepds+=("$stepd")
      tasks+=($(pgrep -P "$stepd"))
    fi
  done 2>/dev/null
  slurmd=$(cat "$CAIRN_DEVCLUSTER/run/slurmd-$2.pid")
  as_root kill -STOP "$slurmd" "${stepds[@]}" "${tasks[@]}"
  as_root scontrol update NodeName="$2" State=DOWN Reason=test
  as_root kill -KILL "$slurmd" "${stepds[@]}" "${tasks[@]}"
  # A machine that dies takes its memory with it.
  as_root find "/dev/shm/cairn-$(id -u "$cluster_user")" -mindepth 1 -maxdepth 1 -name "$1.$2.*" -exec rm -r {} +
}

has_all() { (($(compgen -G "$T/$1.*" | wc -l) == $2)); }
all_begin() { (($(cat "$T"/toy.* | grep -c resumed) == $1)); }

@test "any node: status and save work from all nodes of a job, by its user alone, and the signals of cairn run reach all ranks" {
  local job on_last
  job=$(submit toy --nodes=2 <<SCRIPT
#!/bin/bash
echo \$\$ >run.pid
exec cairn run --ntasks-from=cpus --max-nodes=1 -- srun --checkpoint-dir=run --checkpoint-on=request --checkpoint-signal=USR1 bash -c '
  trap : USR1
  trap "touch signalled.\$SLURM_PROCID" USR2
  (trap "" USR2; exec $toy --steps 1000000 --step-us 10000 >toy.\$SLURM_PROCID) &
  until wait \$!; do :; done'
SCRIPT
  )
  wait_for 60 all_begin 8  # a node's processors
  on_last="srun --jobid=$job --overlap --nodes=1 --ntasks=1 --nodelist=$(scontrol show hostnames "$(job_field "$job" NodeList)" | tail -n 1) --checkpoint=off"
  run -0 as_user $on_last cairn status run
  [[ $output =~ ranks\ +8 ]]
  run -0 as_user $on_last cairn save run
  has_committed "$T/run" 1
  for command in status save; do
    run -1 as_other_user cairn $command "$T/run"
    [[ $output == *Permission\ denied* ]]
  done
  as_root kill -USR1 "$(cat "$T/run.pid")"
  wait_for 60 has_committed "$T/run" 2
  as_root kill -USR2 "$(cat "$T/run.pid")"
  wait_for 60 has_all signalled 8
  as_user scancel "$job"
}

@test "no cure: a program that fails by itself at the same step twice is not run again" {
  local job
  job=$(submit toy --nodes=2 <<SCRIPT
#!/bin/bash
cairn run -- srun --checkpoint=10steps --checkpoint-dir=run bash -c '$toy --steps 100 --step-us 20000 --exit-at 35; exit 3'
echo "cairn run: status \$?"
SCRIPT
  )
  wait_for 60 job_has_ended "$job"
  grep -qE 'it has failed twice (at the same step|in a row without a checkpoint in between); .*To resume, run the same command again with --checkpoint-dir='"$T/run" "$T/toy.out"
  [[ $(grep -c '^cairn: protected: ' "$T/toy.out") == 2 ]]
  grep -q '^cairn run: status [1-9]' "$T/toy.out"
}

@test "no cure: scancel ends the job, its step and cairn run, and nothing comes back" {
  local job
  job=$(elastic --nodes=2 '' '--checkpoint-dir=run --checkpoint=20steps' $plate --steps 100000)
  wait_for 60 heat2d_is_past 5
  as_user scancel "$job"
  wait_for 60 cluster_is_idle
  job_is "$job" CANCELLED
  [[ $(lives_of) == 1 && $(job_field "$job" Restarts) == 0 ]]
}

@test "no cure: a SIGTERM to cairn run reaches the ranks as one: they save, and no other step is started" {
  local job
  job=$(submit heat2d --nodes=2 <<SCRIPT
#!/bin/bash
echo \$\$ >run.pid
exec cairn run -- srun --mpi=pmix --checkpoint-dir=run $heat2d --log heat2d.log $plate --steps 100000 --step-ms 20
SCRIPT
  )
  wait_for 60 heat2d_is_past 5
  as_root kill -TERM "$(cat "$T/run.pid")"
  wait_for 60 job_has_ended "$job"
  [[ $(lives_of) == 1 && $(job_field "$job" ExitCode) == 143:0 ]]
  (($(committed_step "$T/run") > 5))
  said 'life 0 .* ended: told to end; the newest checkpoint holds step .*; no other step is started. To resume, '
}

@test "resize: a job without cairn run is told so, and by way of the queue it may grow" {
  local job options="$plate --steps 500"
  job=$(submit_heat2d --nodes=1 --checkpoint --checkpoint-dir=run -- $options --step-ms 100)
  wait_for 60 heat2d_is_past 4
  run -1 as_user cairn resize "$job" 2
  [[ $output == *"was not started by \`cairn run\`: its step would not use the nodes that come"* ]]
  run -0 as_user cairn resize "$job" 2 --requeue
  ends_well "$job" 500 $options
  [[ $(lives_of) == 2 && $(ranks_of 0) == 1 && $(ranks_of 1) == 2 ]]
}

# The last one, since teardown_file brings the plugin back.
@test "no plugin: for an ordinary user cairn run is the host of its steps, makes a lost rank good, and requeues after a preemption" {
  local job options="$plate --steps 500"
  as_root mv "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf" "$CAIRN_DEVCLUSTER/cairn.conf.away"
  run ! as_user srun --nodes=1 --checkpoint true
  run -0 --separate-stderr as_user salloc --quiet --nodes=1 cairn run -- srun --checkpoint-attach=torch printenv PYTHONPATH
  [[ $output == "$CAIRN_PREFIX"/*/cairn/python/attach ]]
  # Nor does srun end the step: it would let the other ranks hang.
  job=$(elastic --nodes=2-4 '' '--checkpoint-dir=run --checkpoint=4steps --kill-on-bad-exit=0' $options)
  wait_for 60 has_committed "$T/run"
  as_root kill -KILL "$(task_pid "$job" 1)"
  wait_for 60 begins 1
  preempt_job "$job" 2
  lift_hold "$job"
  ends_well "$job" 500 $options
  [[ $(lives_of) == 3 && $(ranks_of 1) == "$(ranks_of 0)" && $(ranks_of 2) == 2 && $(job_field "$job" Restarts) == 1 ]]
  # Of the rank that was killed; there is no epilog.
  as_root rm -f "/dev/shm/cairn-$(id -u "$cluster_user")/$job".*.shield.*
}

# Slurm 22.05 goes on counting CPUs of steps whose job was resized or lost a node: later jobs would get fewer nodes than are idle.
teardown_file() {
  if [[ -e $CAIRN_DEVCLUSTER/cairn.conf.away ]]; then mv "$CAIRN_DEVCLUSTER/cairn.conf.away" "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf"; fi
  "$devcluster" down
  "$devcluster" up --prefix "$CAIRN_PREFIX"
}
