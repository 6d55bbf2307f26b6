# How processes leave: shell wrappers, handlers of the program's own, programs that end while a save is under way.
load helpers

@test "10: shells and other launchers live until the final save is durable, end then, and report in the life that finishes" {
  local job rank ranks name shields=() options='--nx 101 --ny 67 --steps 500'
  launchers
  ranks=${!launched[*]}
  job=$(submit wrapped --nodes=2-4 --ntasks="${#launched[@]}" --checkpoint --checkpoint-on=preempt --checkpoint-dir="$T/run" <<SCRIPT
#!/bin/bash
export STEP_MS=\$((SLURM_RESTART_COUNT ? 0 : 100))
srun --mpi=pmix bash -c 'echo \$\$ >wrapper.\$SLURM_PROCID; ./launch $heat2d --log heat2d.log $options --step-ms \$STEP_MS; echo report \$SLURM_PROCID'
SCRIPT
)
  wait_for 60 heat2d_is_past 1
  for rank in $ranks; do
    if is_launcher "$rank"; then shields+=('lives until the final save is durable'); else shields+=(saves); fi
  done
  watch $(printf 'wrapper.%s launcher.%s ' $(for rank in $ranks; do echo "$rank" "$rank"; done))
  preempt_job "$job" 2
  outlived_save "$T/run"
  for rank in $ranks; do
    [[ ! -s $T/after.$rank ]]
    launcher_is "${launched[rank]}" preemption "${shields[rank]}"
  done
  run ! grep report "$T/wrapped.out"
  lift_hold "$job"
  wait_for 60 job_is "$job" COMPLETED
  for rank in $ranks; do
    grep -q "^report $rank\$" "$T/wrapped.out"
    launcher_is "${launched[rank]}" 'the program has ended' "$([[ -s $T/after.$rank ]] && echo 'goes on' || echo 'ends with it')"
  done
  (($(heat2d_start 1 step) > 1 && $(heat2d_steps_run) >= 500))
  [[ $(heat2d_hash) == $(undisturbed_hash $options) ]]
}

@test "11: the program's own SIGTERM handler, set before or after it opens the session, runs after the commit" {
  local job part when
  job=$(submit handlers --nodes=2-4 --ntasks=4 --checkpoint --checkpoint-on=preempt --checkpoint-dir="$T/run" <<SCRIPT
#!/bin/bash
export STEP_US=\$((SLURM_RESTART_COUNT ? 0 : 20000))
srun bash -c 'set=(before after before after)
exec $toy --steps 3000 --step-us \$STEP_US --own-handler \${set[SLURM_PROCID]} >toy.\${SLURM_RESTART_COUNT:-0}.\$SLURM_PROCID'
SCRIPT
)
  wait_for 60 eval 'grep -qs resumed "$T"/toy.0.3'
  preempt_job "$job" 2
  for part in 0 1 2 3; do
    wait_for 60 grep -q handler "$T/toy.0.$part"
    when=$(grep -oP 'handler \K\d+' "$T/toy.0.$part")
    ((when > $(committed_at "$T/run")))
  done
  lift_hold "$job"
  wait_for 60 job_is "$job" COMPLETED
  [[ $(toy_hash < <(cat "$T"/toy.1.*)) == $(undisturbed_toy_hash --steps 3000) ]]
  grep -qP 'resumed [1-9]\d* 0' "$T/toy.1.0"
}

@test "a program that ends because its job is being ended is not recorded as finished" {
  local job
  job=$(submit quitter --nodes=4 --checkpoint --checkpoint-on=preempt,end --checkpoint-after=wait --checkpoint-dir="$T/run" <<SCRIPT
#!/bin/bash
srun bash -c 'exec $toy --steps 3000 --step-us 20000 --own-handler after >toy.\$SLURM_PROCID'
SCRIPT
)
  wait_for 60 eval 'grep -qs resumed "$T"/toy.3'
  submit high --partition=high --nodes=4 <<<$'#!/bin/bash\nexec sleep 600' >/dev/null
  wait_for 60 job_has_ended "$job"
  grep -q 'done 0' "$T/toy.0"
  grep -q 'the run is not recorded as finished' "$T/quitter.out"
  [[ -n $(committed "$T/run") && ! -e $T/run/FINISHED ]]
}

# toy_life RANKS OPTIONS-OF-RANK-2 [TOY OPTION …]: one life, whose saves take many steps; with $slow_rank=R those of rank R take very many. Leaves what
# was said in $output.
toy_life() {
  local ranks=$1 odd_one=$2
  shift 2
  run -0 timeout 180 "$devcluster" shell env --chdir="$T" srun --nodes=$((ranks < 4 ? ranks : 4)) --ntasks="$ranks" --checkpoint \
    --checkpoint-on=request --checkpoint-dir=run --export="ALL,$(slow_io 50)" \
    bash -c "((SLURM_PROCID == 2)) && odd='$odd_one'; ((SLURM_PROCID == ${slow_rank:--1})) && export SLOW_IO_MS=20000; exec $toy --n 4000000 --steps 200 --step-us 5000 $* \$odd"
}

leavers() { grep -c '^leaving ' <<<"$output"; }
finishers() { grep -c '^hash ' <<<"$output"; }

@test "15: a program that leaves while a save is under way hangs nobody; the save counts only if all members had staged" {
  local first second

  toy_life 4 '' --save-at 20 --exit-while-saving run
  (($(leavers) >= 1 && $(leavers) + $(finishers) == 4))
  first=$(committed "$T/run")
  (($(grep -oPm1 '^leaving \K\d+' <<<"$output") >= $(step_of "$first")))

  toy_life 4 '--exit-while-saving run' --save-at 60
  (($(leavers) == 1 && $(finishers) == 3))
  second=$(committed "$T/run" | tail -n 1)
  [[ $second != "$first" && $output == *"rank 2 has left without cairn_finalize"* ]]

  # Without rank 2's word that its files are durable, which it had no time to give.
  slow_rank=2 toy_life 4 '--abort-while-saving run' --save-at 100
  (($(leavers) == 1 && $(finishers) == 3))
  [[ $output == *"no save (request): rank 2 is gone"* ]]
  diff <(echo "the newest is $second") <(echo "the newest is $(committed "$T/run" | tail -n 1)") >&2

  toy_life 4 '--exit-at 139' --save-at 140
  (($(leavers) == 0 && $(finishers) == 3))
  [[ $output == *"rank 2 has left without cairn_finalize"* && $(committed "$T/run" | tail -n 1) == "$second" ]]

  toy_life 3 ''
  [[ $output == *"resumed at step $(step_of "$second") from $second"* ]]
  [[ $(toy_hash <<<"$output") == $(undisturbed_toy_hash --n 4000000 --steps 200) ]]
}
