# Jobs that are interrupted and go on: the hash that heat2d prints at the end is that of a run that nobody disturbed.
load helpers

readonly plate='--nx 96 --ny 64'

# What the program noted of two lives: the first ran the steps 1 … A, the second S + 1 … N, where S is the step that the second began with.
# Steps S + 1 … A were lost. Cairn said so when the first left; a step that was under way then may be missing in its count.
two_lives_ran_all_steps() {
  local last=$1 saved lost said
  saved=$(heat2d_start 1 step)
  lost=$(($(grep -c '^life=0 step=' "$T/heat2d.log") - saved))
  said=$(($(grep -oP 'cairn: leaving at step \K[0-9]+(?=; the newest checkpoint holds step '"$saved"'$)' "$T/heat2d.out") - saved))
  diff <(grep -oP '^life=0 step=\K.*' "$T/heat2d.log") <(seq $((saved + lost))) >&2
  diff <(grep -oP '^life=1 step=\K.*' "$T/heat2d.log") <(seq $((saved + 1)) "$last") >&2
  ((saved > 0 && lost - said >= 0 && lost - said <= 20))  # on a busy machine it takes some steps to die
}

@test "1: a job preempted on four nodes resumes on two and ends with the same hash" {
  local job high options="$plate --steps 500"
  job=$(submit_heat2d --nodes=2-4 --checkpoint --checkpoint-dir=run -- $options --step-ms 100)
  wait_for 60 heat2d_is_past 4
  high=$(preempt_job "$job" 2)
  hurry
  lift_hold "$job"
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(heat2d_start 0 nodes) == 'n[1-4]' && $(heat2d_start 0 ranks) == 4 ]]
  [[ $(heat2d_start 1 ranks) == 2 ]]
  diff <(scontrol show hostnames "$(heat2d_start 1 nodes),$(job_field "$high" NodeList)" | sort) <(printf 'n%d\n' 1 2 3 4) >&2
  two_lives_ran_all_steps 500
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
}

# limited NAME OPTIONS: a toy on one node that comes to its time limit in a life that begins before `fast`. Output: $T/NAME.out
limited() {
  submit "$1" --nodes=1 --time=1 --checkpoint-notice=45s <<SCRIPT
#!/bin/bash
srun --checkpoint-dir=$1 $2 $toy $toy_steps --step-us \$([[ -e fast ]] && echo 0 || echo 20000)
SCRIPT
}
said() { grep -qP "^cairn: $2" "$T/$1.out"; }

@test "2: a job longer than its time limit saves before it, requeues itself and ends with the same hash; also in the middle of a save, and not after its last life" {
  local job during last rank shields=() step again options="$plate --steps 500" toy_steps='--steps 3000'
  hold_saves
  launchers
  during=$(limited during "--export=ALL,$(slow_io 0) --checkpoint=20steps")
  last=$(limited last '--checkpoint=20steps --checkpoint-max-lives=1')
  job=$(submit heat2d --nodes=2 --ntasks="${#launched[@]}" --time=1 --checkpoint --checkpoint-dir=run --checkpoint-notice=50s \
    <<<$'#!/bin/bash\n'"srun --mpi=pmix ./launch $heat2d --log heat2d.log $options --step-ms \$((SLURM_RESTART_COUNT ? 0 : 100))")
  wait_for 60 heat2d_is_past 1
  for rank in "${!launched[@]}"; do
    if is_launcher "$rank"; then shields+=('lives until the final save is durable'); else shields+=(saves); fi
  done
  watch $(printf 'launcher.%s ' "${!launched[@]}")
  wait_for 60 said heat2d 'time limit; .* s left: saving'
  [[ $(job_field "$job" Reason) != TimeLimit ]]  # it is not Slurm that ends this life

  wait_for 60 said during '[0-9.]+ s left: step \d+, whose save is under way, is '
  step=$(grep -oP 's left: step \K\d+(?=, whose save is under way)' "$T/during.out")
  run ! committed_step "$T/during"
  release_saves
  as_user touch fast
  wait_for 60 said last 'saved step \d+ \(timelimit\)'
  wait_for 60 said last 'not requeued by Cairn \(--checkpoint-max-lives=1 allows no more lives\)'
  outlived_save "$T/run"
  for rank in "${!launched[@]}"; do launcher_is "${launched[rank]}" 'time limit' "${shields[rank]}"; done
  lift_hold "$job"
  lift_hold "$during"
  said during "saved step $step \\(interval\\)"

  job_is "$last" RUNNING
  as_user scancel "$last"
  wait_for 60 job_has_ended "$last"
  [[ $(job_field "$last" Restarts) == 0 ]]
  again=$(grep -m 1 -oP 'to resume, run the same command again with \K--checkpoint-dir=\S+' "$T/last.out")
  run -0 as_user srun --nodes=1 --checkpoint "$again" "$toy" $toy_steps
  [[ $(toy_hash <<<"$output") == "$(undisturbed_toy_hash $toy_steps)" ]]
  (($(grep -oP '^resumed \K\d+' <<<"$output") >= $(grep -oP 'saved step \K\d+(?= \(timelimit)' "$T/last.out")))

  for job in "$job" "$during"; do
    wait_for 60 job_has_ended "$job"
    job_is "$job" COMPLETED
    [[ $(job_field "$job" Restarts) == 1 ]]
  done
  two_lives_ran_all_steps 500
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
  [[ $(toy_hash <"$T/during.out") == "$(undisturbed_toy_hash $toy_steps)" ]]
  (($(grep -oP '^resumed \K[1-9]\d*' "$T/during.out") >= step))
}

has_checkpoint() { committed_step "$T/cairn-$1/heat2d"; }

@test "3: when a rank is killed the step ends, and the command that Cairn prints resumes it with the same hash" {
  local rank job again saved victim options="$plate --steps 500"
  for rank in 0 2; do
    as_user rm -f heat2d.log heat2d.out hurry
    job=$(submit heat2d --nodes=3 --checkpoint=4steps <<SCRIPT
#!/bin/bash
srun -K1 --mpi=pmix \$1 $heat2d --log heat2d.log $options --step-ms 100 --hurry hurry
echo "srun: status \$?"
exit 1
SCRIPT
    )
    wait_for 60 has_checkpoint "$job"
    wait_for 60 heat2d_is_past $(($(heat2d_step) + 2))
    as_root kill -KILL "$(task_pid "$job" "$rank")"
    wait_for 60 job_has_ended "$job"
    grep -qx 'srun: status 1[0-9][0-9]' "$T/heat2d.out"
    again=$(grep -m 1 -oP '[Rr]un the same command again with \K--checkpoint-dir=\S+' "$T/heat2d.out")
    saved=$(committed_step "${again#*=}")
    hurry
    job=$(as_user sbatch --parsable --output=heat2d.out --open-mode=append --nodes=3 --checkpoint=4steps heat2d.sbatch "$again")
    wait_for 60 job_has_ended "$job"
    [[ $(grep -oP ' start step=\K[0-9]+' "$T/heat2d.log" | tail -n 1) == "$saved" ]]
    [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
  done
}

@test "three jobs are preempted: one before it has restored loses nothing and is requeued, one that may not be requeued and a plain srun are told how to resume" {
  local job kept direct name high again options='--steps 500'
  kept=$(submit kept --nodes=1 --partition=now --no-requeue <<SCRIPT
#!/bin/bash
srun --checkpoint $toy $options --step-us 200000 >toy.kept
SCRIPT
  )
  as_user srun --nodes=1 --partition=now --checkpoint --checkpoint-dir=direct "$toy" $options --step-us 200000 >"$BATS_TEST_TMPDIR/direct" 2>&1 3>&- &
  direct=$!
  wait_for 60 grep -qs resumed "$T/toy.kept"
  wait_for 60 grep -q resumed "$BATS_TEST_TMPDIR/direct"
  job=$(submit toy --nodes=2-4 --checkpoint --checkpoint-dir=run <<SCRIPT
#!/bin/bash
srun $toy --steps 50 --restore-file go
SCRIPT
  )
  wait_for 60 eval '(($(grep -c "^open 0" "$T/toy.out") == $(job_field "$job" NumNodes)))'
  high=$(preempt_job "$job" 4)
  grep -q "cairn: job $job is requeued and will resume" "$T/toy.out"
  wait_for 60 job_has_ended "$kept"
  job_is "$kept" PREEMPTED
  as_root scancel "$high"
  as_user touch go
  lift_hold "$job"
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(job_field "$job" Restarts) == 1 ]]

  wait "$direct" || true  # the signal's status
  grep -q '^cairn: not requeued by Cairn (Slurm requeues batch jobs alone)' "$BATS_TEST_TMPDIR/direct"
  for name in "$T/kept.out" "$BATS_TEST_TMPDIR/direct"; do
    again=$(grep -m 1 -oP 'not requeued by Cairn \(.*requeue.*\); to resume, run the same command again with \K--checkpoint-dir=\S+' "$name")
    run -0 as_user srun --nodes=1 --checkpoint "$again" "$toy" $options --step-us 0
    [[ $(toy_hash <<<"$output") == "$(undisturbed_toy_hash $options)" && $output == *resumed\ [1-9]* ]]
  done
}

array_has() { (($(squeue --noheader --array --job="$1" --states="$2" --format=%i | wc -l) == $3)); }

@test "of an array of four tasks two are preempted: each resumes its own, and the other two are not disturbed" {
  local job task hash options='--steps 500'
  job=$(submit array --array=0-3 --nodes=1 --checkpoint --checkpoint-dir=run <<SCRIPT
#!/bin/bash
srun $toy $options --step-us 100000 --hurry hurry >toy.\$SLURM_ARRAY_TASK_ID.\${SLURM_RESTART_COUNT:-0}
SCRIPT
  )
  for task in 0 1 2 3; do wait_for 60 grep -qs resumed "$T/toy.$task.0"; done
  submit high --partition=high --nodes=2 <<<$'#!/bin/bash\nexec sleep 600' >/dev/null
  wait_for 60 array_has "$job" PENDING 2
  hurry
  for task in $(squeue --noheader --array --job="$job" --states=PENDING --format=%i); do lift_hold "$task"; done
  wait_for 90 array_has "$job" PENDING,RUNNING,COMPLETING 0
  [[ $(job_field "$job" JobState) == $'COMPLETED\nCOMPLETED\nCOMPLETED\nCOMPLETED' ]]
  hash=$(undisturbed_toy_hash $options)
  for task in 0 1 2 3; do [[ $(toy_hash < <(cat "$T/toy.$task".*)) == "$hash" ]]; done
  [[ $(grep -hoP '^resumed \K\d+' "$T"/toy.?.0) == $'0\n0\n0\n0' && $(grep -lP '^resumed [1-9]' "$T"/toy.?.1 | wc -l) == 2 ]]
}

@test "a job that is suspended and resumed goes on, saves again, and ends with the same hash" {
  local job saved options="$plate --steps 500"
  job=$(submit_heat2d --nodes=2 --checkpoint=4steps --checkpoint-dir=run -- $options --step-ms 100)
  wait_for 60 has_committed "$T/run"
  as_root scontrol suspend "$job"
  wait_for 60 job_is "$job" SUSPENDED
  sleep 8  # by which a rank that does not answer is suspect
  saved=$(committed_step "$T/run")
  as_root scontrol resume "$job"
  wait_for 60 eval '(($(committed_step "$T/run") > '"$saved"'))'
  hurry
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" && $(grep -c ' start step=' "$T/heat2d.log") == 1 ]]
}
