# Jobs of other shapes than one srun in a batch script of one partition, several at a time, since most of their time is spent waiting. Each ends
# like a run that nobody disturbed; printed is how many steps were lost, and how long it took from the event until the job ran again.
load helpers

readonly plate='--nx 96 --ny 64 --steps 500'

# shape NAME [SBATCH OPTION …] <<< script: a job on one node. In its script `heat2d SRUN-OPTION …` is a step of two ranks that notes its steps in
# NAME.log, so slowly, as long as there is no file `fast`, that it cannot end by itself: only every half minute Slurm looks for jobs whose grace
# time is over. Output: NAME.out
shape() {
  local name=$1
  shift
  submit "$name" --nodes=1 --ntasks=2 --requeue "$@" <<SCRIPT
#!/bin/bash
heat2d() { srun --mpi=pmix --checkpoint "\$@" $heat2d --log $name.log $plate --step-ms \$([[ -e fast ]] && echo 0 || echo 200); }
$(cat)
SCRIPT
}

makes_steps() { grep -qs ' step=5$' "$T/$1.log"; }
said() { grep -q "^cairn: $2" "$T/$1.out"; }

# ends_well NAME JOB LIVES: the job completes.
ends_well() {
  local name=$1 job=$2 lives=$3 lost
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(grep -oP ' hash=\K\w+' "$T/$name.log" | tail -n 1) == "$(undisturbed_hash $plate)" ]]
  [[ $(grep -c ' start step=' "$T/$name.log") == "$lives" ]]
  lost=$(steps_lost 500 "$T/$name.log")
  echo "$name: $lost steps were lost; ran again after $(ran_again "$(grep -ls "\"job\":\"${job%+0}\"" "$T"/cairn-*/*/journal.jsonl | head -n 1)")" >&3
}

@test "a script requeues its job in the second of two steps; three are preempted: without a grace time, for good, beside a task without a session" {
  local now cancel beside steps again high name job
  now=$(shape now --partition=now <<<heat2d)
  cancel=$(shape cancel --partition=cancel <<<'heat2d "$@"')
  # Slurm sends the signal within the half minute after a minute before the limit: at any time in this life, and in the next, too.
  steps=$(shape steps --time=1 --signal=B:USR1@60 <<SCRIPT
go_on() { until grep -qs ' step=5$' steps.log; do sleep 0.1; done; scontrol requeue \$SLURM_JOB_ID; }
if ((SLURM_RESTART_COUNT)); then trap '' USR1; else trap go_on USR1; fi
{
  srun --checkpoint --ntasks=1 --job-name=prepare $toy --steps 30 >>prepare.log
  heat2d --checkpoint-notice=5s
} &
wait \$!  # until the trap has been run, or the steps have ended
wait \$!
SCRIPT
  )
  beside=$(shape beside --ntasks=3 <<SCRIPT
srun --checkpoint bash -c 'if ((SLURM_PROCID == 2)); then until [[ -e done.1 ]]; do sleep 0.1; done; echo served; exit; fi
  SLURM_NTASKS=2 $toy --steps 500 --step-us \$([[ -e fast ]] && echo 0 || echo 200000) >>toy.\$SLURM_PROCID; touch done.\$SLURM_PROCID'
SCRIPT
  )
  for name in now cancel steps; do wait_for 60 makes_steps $name; done
  wait_for 60 grep -q resumed "$T/toy.1"
  high=$(submit high --partition=high --nodelist="$(job_field "$now" NodeList),$(job_field "$cancel" NodeList),$(job_field "$beside" NodeList)" \
    <<<$'#!/bin/bash\nexec sleep 600')
  wait_for 60 said cancel 'not requeued by Cairn (.*PreemptMode=CANCEL.*); to resume, run the same command again with --checkpoint-dir='
  as_user touch fast
  for job in "$now" "$steps" "$beside"; do wait_for 90 job_is "$job" PENDING; done
  [[ ! -e $T/done.0 && ! -e $T/done.1 && $(cat "$T/beside.out") != *served* ]]
  as_root scancel "$high"
  for job in "$now" "$steps" "$beside"; do lift_hold "$job"; done
  wait_for 60 job_has_ended "$cancel"
  job_is "$cancel" PREEMPTED
  again=$(as_user sbatch --parsable --output=cancel.out --open-mode=append --nodes=1 --ntasks=2 cancel.sbatch \
    "$(grep -m 1 -oP 'with \K--checkpoint-dir=\S+' "$T/cancel.out")")
  ends_well now "$now" 2
  ends_well steps "$steps" 2
  ends_well cancel "$again" 2
  # The first step had finished, and has nothing to do in the second life.
  [[ $(grep -oP '^resumed \K\d+ \d' "$T/prepare.log") == $'0 0\n30 1' ]]
  wait_for 60 job_has_ended "$beside"
  job_is "$beside" COMPLETED
  [[ $(cat "$T"/toy.[01] | toy_hash) == $(undisturbed_toy_hash --steps 500) ]]
  [[ $(cat "$T/beside.out") == *served* ]]
}

@test "three jobs are preempted: one of two components, one at a terminal without a grace time, one of mpirun" {
  local het mpi terminal high name job
  het=$(shape het : --nodes=1 <<<heat2d)
  mpi=$(shape mpi --checkpoint <<<"mpirun -n 2 $heat2d --log mpi.log $plate --step-ms \$([[ -e fast ]] && echo 0 || echo 200)")
  as_user script --quiet --flush --return --command "salloc --partition=now --nodes=1 srun --pty --checkpoint --checkpoint-dir=run.pty \
    $toy --steps 500 --step-us 200000" pty.out </dev/null >/dev/null 3>&- &
  terminal=$!
  for name in het mpi; do wait_for 60 makes_steps $name; done
  wait_for 60 grep -q resumed "$T/pty.out"
  high=$(submit high --partition=high --nodes=4 <<<$'#!/bin/bash\nexec sleep 600')
  as_user touch fast
  for job in "$het+0" "$mpi"; do wait_for 60 job_is "$job" PENDING; done
  as_root scancel "$high"
  for job in "$het+0" "$het+1" "$mpi"; do lift_hold "$job"; done
  wait "$terminal" || true  # the signal's status
  said pty 'not requeued by Cairn (Slurm requeues batch jobs alone); to resume, run the same command again with --checkpoint-dir=.*/run.pty'
  run -0 as_user salloc --quiet --nodes=1 srun --checkpoint --checkpoint-dir=run.pty "$toy" --steps 500
  [[ $(toy_hash <<<"$output") == $(undisturbed_toy_hash --steps 500) && $output == *resumed\ [1-9]* ]]
  ends_well het "$het+0" 2
  ends_well mpi "$mpi" 2
  said mpi 'saved step [0-9]* (preempt)'
  launcher_is mpirun preemption 'lives until the final save is durable'
  launcher_is mpirun 'the program has ended' 'ends with it'
}

@test "a job of mpirun comes to its time limit, and goes on after its requeue" {
  local job
  job=$(shape limit --time=1 --checkpoint --checkpoint-notice=45s <<SCRIPT
echo \$\$ >mpirun
exec mpirun -n 2 $heat2d --log limit.log $plate --step-ms \$([[ -e fast ]] && echo 0 || echo 200)
SCRIPT
  )
  wait_for 60 makes_steps limit
  watch mpirun
  wait_for 60 said limit 'time limit; .* s left: saving'
  as_user touch fast
  outlived_save "$T/cairn-$job/"*
  launcher_is mpirun 'time limit' 'lives until the final save is durable'
  lift_hold "$job"
  said limit 'saved step [0-9]* (timelimit)'
  ends_well limit "$job" 2
}
