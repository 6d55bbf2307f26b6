# What a later life makes of the checkpoints of an earlier one.
load helpers

readonly plate='--nx 101 --ny 67'

odd_step() { saved_steps | grep -m 1 '[13579]$'; }
even_step() { saved_steps | grep -m 1 '[02468]$'; }
saved_steps() { committed "$T/saved" | while read -r name; do step_of "$name"; done; }

# save_many: a run in the folder `saved`, on four ranks, of which all checkpoints are kept, one of an odd step and one of an even one among them. It
# is finished at step 100.
save_many() {
  local step=(as_user srun --mpi=pmix --nodes=4 --checkpoint=3steps --checkpoint-keep=last=100 --checkpoint-dir=saved "$heat2d" $plate --steps 100)
  "${step[@]}" --step-ms 100 --hurry hurry 3>&- &
  wait_for 60 odd_step
  wait_for 60 even_step
  hurry
  wait $!
}

# resume RANKS DIR [SRUN OPTION …]: on to step 120, without further saves. Leaves stdout and stderr in $output.
resume() {
  local ranks=$1 dir=$2
  shift 2
  run -0 as_user srun --mpi=pmix --nodes=$((ranks < 4 ? ranks : 4)) --ntasks="$ranks" --checkpoint --checkpoint-on=request \
    --checkpoint-dir="$dir" "$@" "$heat2d" $plate --steps 120
}

@test "13: saved by 4 ranks at an odd and at an even step, resumed by 1, 2, 3, 5, 6, 7, 8: equal hash each" {
  local reference odd even step ranks
  reference=$(undisturbed_hash $plate --steps 120)
  save_many
  odd=$(odd_step)
  even=$(even_step)
  for step in "$odd" "$even"; do
    for ranks in 1 2 3 5 6 7 8; do
      as_user cp -r saved "$step.$ranks"
      resume "$ranks" "$step.$ranks" --checkpoint-resume="$step"
      [[ $output == *"cells on $ranks ranks, from step $step of 120"* ]]
      [[ $output == *"done at step 120, $((120 - step)) of them in this life, hash $reference"* ]]
      [[ $output != *"is finished"* ]]
    done
  done
}

@test "16: an array reshaped between two lives stops all ranks, naming item, shapes and remedy; the checkpoint stays good" {
  local label
  as_user srun -N4 --checkpoint --checkpoint-dir=run "$toy" --save-at 20 --wait-at 20 --exit-at 40
  run -4 as_user srun -N3 --label --checkpoint --checkpoint-dir=run "$toy" --n 5000
  for label in 0 1 2; do
    [[ $output == *"$label: restore -2 checkpoint step-"*" and the program differ:"* ]]
    [[ $output == *"$label:   u: saved [10007] F64, registered [5000] F64"* ]]
    [[ $output == *"$label: The checkpoint is unchanged and good. Run the program that made it, or start anew with another --checkpoint-dir"* ]]
  done
  [[ $output != *resumed* ]]
  run -0 as_user srun -N2 --checkpoint --checkpoint-dir=run "$toy"
  [[ $output == *"resumed at step 20 "* && $(toy_hash <<<"$output") == $(undisturbed_toy_hash) ]]
}

@test "--checkpoint-files=per-node: one file of arrays for each node, and any number of ranks resumes from them" {
  run -0 as_user srun -N2 -n4 --checkpoint --checkpoint-files=per-node --checkpoint-dir=run "$toy" --save-at 20 --wait-at 20 --exit-at 40
  [[ $output == *"each save has 2 files of arrays"* ]]
  [[ $(ls "$T"/run/step-*/shard-*.safetensors | wc -l) == 2 ]]
  as_user cairn verify run
  run -0 as_user srun -N3 --checkpoint --checkpoint-dir=run "$toy"
  [[ $output == *"resumed at step 20 "* && $(toy_hash <<<"$output") == $(undisturbed_toy_hash) ]]
}

@test "the best by a metric is kept, and a new run begins from it with --checkpoint-from" {
  local kept
  as_user srun -N4 --checkpoint --checkpoint-keep=last=1,best=1:loss:max --checkpoint-dir=old \
    "$toy" --steps 40 --save-every 10 --measure-every 10
  kept=$(committed "$T/old" | while read -r name; do step_of "$name"; done)
  [[ $kept == $'10\n40' ]]
  run -0 as_user srun -N3 --checkpoint --checkpoint-from=old@10 --checkpoint-dir=new "$toy"
  [[ $output == *"this run begins from $T/old@step-000000000010."* && $output == *"resumed 10 0"* ]]
  [[ $(toy_hash <<<"$output") == $(undisturbed_toy_hash) ]]
  run -0 as_user cairn ls new
  [[ $output == *"forked from $T/old@step-000000000010."* ]]
}

@test "17: the newest checkpoint damaged by a flipped byte, or cut short, is named and marked, and the next older one used" {
  local reference newest older shard fault
  reference=$(undisturbed_hash $plate --steps 120)
  save_many
  newest=$(committed "$T/saved" | tail -n 1)
  older=$(committed "$T/saved" | tail -n 2 | head -n 1)
  shard=shard-00002-model-00001-of-00001.safetensors
  for fault in flipped cut; do
    as_user cp -r saved "$fault"
    case $fault in
      flipped) flip_byte "$T/$fault/$newest/$shard" 5000 ;;
      cut) as_user truncate -s -100 "$fault/$newest/$shard" ;;
    esac
    resume 3 "$fault"
    [[ $output == *"checkpoint $newest is damaged and passed over: "*"$shard"* ]]
    [[ $output == *"resumed at step $(step_of "$older") from $older"* && $output != *"is finished"* ]]
    [[ $output == *", hash $reference"* ]]
    resume 4 "$fault"
    [[ $output != *"passed over"* && $output == *"resumed at step $(step_of "$older") from $older"* ]]
  done
}

flip_byte() {
  local byte
  byte=$(od -An -tu1 -j"$2" -N1 "$1")
  printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# one_life_from STEP: heat2d has noted one life, which went on from there to the end of the undisturbed run.
one_life_from() {
  diff <(echo "from step $1, $((500 - $1)) steps, hash $reference") \
    <(echo "from step $(heat2d_start 0 step), $(heat2d_steps_run) steps, hash $(heat2d_hash)") >&2
}

@test "18: a fresh sbatch of the same script resumes; a finished run says so; resume=never starts over once, then resumes its own" {
  local reference job saved
  local options=(--nodes=2 --checkpoint=10steps --checkpoint-dir="$T/run" --output=heat2d.out --open-mode=append --parsable)
  reference=$(undisturbed_hash $plate --steps 500)

  export STEP_MS=100
  job=$(submit_heat2d "${options[@]}" -- $plate --steps 500 --step-ms '$((SLURM_RESTART_COUNT ? 0 : STEP_MS))')
  wait_for 60 has_committed "$T/run"
  scancel "$job"
  wait_for 60 job_has_ended "$job"
  saved=$(committed_step "$T/run")
  rm "$T"/heat2d.{log,out}

  export STEP_MS=0
  job=$(as_user sbatch "${options[@]}" heat2d.sbatch)
  wait_for 60 job_has_ended "$job"
  one_life_from "$saved"
  rm "$T"/heat2d.{log,out}

  job=$(as_user sbatch "${options[@]}" heat2d.sbatch)
  wait_for 60 job_has_ended "$job"
  grep 'this run is finished: its last state (step 500) is loaded, and there is nothing left to do' "$T/heat2d.out"
  one_life_from 500
  rm "$T"/heat2d.{log,out}

  export STEP_MS=100
  job=$(as_user sbatch "${options[@]}" --checkpoint-resume=never heat2d.sbatch)
  wait_for 60 heat2d_start 0 step
  diff <(echo 'with resume=never it begins at step 0') <(echo "with resume=never it begins at step $(heat2d_start 0 step)") >&2
  wait_for 60 grep -qs 'saved step' "$T/heat2d.out"
  as_user scontrol requeue "$job"
  lift_hold "$job"
  wait_for 60 job_is "$job" COMPLETED
  saved=$(heat2d_start 1 step)
  echo "requeued, it began at step $saved" >&2
  ((saved >= 10 && saved < 500))
  [[ $(heat2d_hash) == "$reference" ]]
}
