# contrib/examples/gpt as a user would run it: its losses are those of a run that nobody disturbed, whatever became of its nodes. Needs a Python
# with PyTorch, which CAIRN_TEST_TORCH_PYTHON names.
load helpers

# Who waits for SIGKILL when the job is cancelled is told from who does not.
setup_file() { KILLWAIT=30 "$devcluster" up; }
teardown_file() { "$devcluster" up; }

# gpt NAME [SBATCH OPTION …]: $epochs (3) epochs of the example, each of 39 steps on four ranks; a life that begins before `hurry` makes slow ones.
# Output: $T/NAME.out
gpt() {
  local name=$1 package
  shift
  package=$(find "$CAIRN_PREFIX" -path '*/cairn/python/cairn/__init__.py' -printf '%h/..\n')
  as_user env PYTHON=./python PYTHONPATH="$package" MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1 \
    sbatch --parsable --output="$name.out" "$@" "${script:-gpt.sbatch}" --epochs "${epochs:-3}"
}

# example: puts it into $T, with a Python that has PyTorch.
example() {
  as_user "${CAIRN_TEST_TORCH_PYTHON:-false}" -c 'import torch' || skip 'CAIRN_TEST_TORCH_PYTHON names no Python with PyTorch'
  as_user cp -r "$CAIRN_PREFIX/share/cairn/examples/gpt/." .
  as_user tee python >/dev/null <<SCRIPT
#!/bin/bash
exec $CAIRN_TEST_TORCH_PYTHON "\$@" --step-ms \$([[ -e hurry ]] && echo 0 || echo 300)
SCRIPT
  as_user chmod +x python
}

# torchrun_script: $T/torchrun.sbatch, the example below torchrun below `cairn run`; each torchrun leaves its pid in $T/torchrun.NODE.
torchrun_script() {
  as_user tee torchrun.sbatch >/dev/null <<'SCRIPT'
#!/bin/bash
cairn run --tasks-per-node=1 -- srun --checkpoint-dir="$SLURM_JOB_NAME" --checkpoint-on=preempt,request,timelimit --checkpoint-notice=80s bash -c '
  echo $$ >torchrun.$SLURM_NODEID
  exec "$PYTHON" -m torch.distributed.run --nnodes=$SLURM_STEP_NUM_NODES --node-rank=$SLURM_NODEID --nproc-per-node=1 \
    --master-addr="$MASTER_ADDR" --master-port=$((20000 + (SLURM_JOB_ID + SLURM_STEP_ID) % 10000)) train.py "$@"' torchrun "$@"
SCRIPT
}

losses() { grep -oP '^step \K[0-9]+ loss \S+' "$T/$1.out"; }
is_past() { (($(losses "${2:-broken}" | tail -n 1 | cut -d ' ' -f 1) > $1)); }
has_begun() { grep -q "^$1 ranks begin after step" "$T/broken.out"; }
nodes_idle() { (($(sinfo --noheader --partition=low --Node --format=%T | grep -c '^idle$') == $1)); }

# equal_losses NAME TOLERANCE: of the same steps of the undisturbed run, relative; prints the largest difference.
equal_losses() {
  awk -v tolerance="$2" '
    NR == FNR { whole[$1] = $3; next }
    { difference = ($3 - whole[$1]) / whole[$1]; if (difference < 0) difference = -difference; if (difference > largest) largest = difference }
    END { print "losses are at most " largest " off"; exit !(largest <= tolerance) }' <(losses whole) <(losses "$1") >&3
}

@test "a GPT that is preempted on four nodes, goes on on two and then on three, ends with the losses of an undisturbed run" {
  local job high other saved
  example

  hurry
  job=$(gpt whole --nodes=4 --checkpoint=off)
  wait_for 90 job_has_ended "$job"
  [[ $(losses whole | wc -l) == 117 ]]

  as_user rm hurry
  job=$(gpt broken --checkpoint-dir=run --checkpoint-keep=last=9)
  wait_for 60 is_past 3
  high=$(preempt_job "$job" 2)
  saved=$(committed_step "$T/run")
  lift_hold "$job"
  wait_for 60 has_begun 2
  wait_for 60 is_past $((saved + 3))
  other=$(preempt_job "$job" 1)
  as_root scancel "$high"
  wait_for 60 nodes_idle 3
  hurry
  lift_hold "$job"
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(grep -oP '^[0-9](?= ranks begin)' "$T/broken.out" | paste -sd ' ') == '4 2 3' ]]
  grep -qx "2 ranks begin after step $saved" "$T/broken.out"
  [[ $(losses broken | cut -d ' ' -f 1 | sort -nu | wc -l) == 117 ]]
  equal_losses broken 1e-5
  as_root scancel "$other"

  wait_for 60 nodes_idle 4
  job=$(gpt again --nodes=4 --checkpoint-dir=again --checkpoint-from="run@$saved")
  wait_for 90 job_has_ended "$job"
  diff <(losses again) <(losses whole | tail -n +$((saved + 1))) >&2
}

@test "a GPT of torchrun under cairn run, preempted on four nodes, goes on on two, and shrunk then on one, with the losses of an undisturbed run" {
  local job high epochs=1 script
  example
  torchrun_script
  hurry
  job=$(gpt whole --nodes=4 --checkpoint=off)
  wait_for 90 job_has_ended "$job"
  [[ $(losses whole | wc -l) == 39 ]]

  as_user rm hurry
  script=torchrun.sbatch
  wait_for 30 nodes_idle 4
  job=$(gpt broken --job-name=run --nodes=2-4 --requeue --open-mode=append)
  wait_for 90 is_past 3
  watch torchrun.{0..3}
  high=$(preempt_job "$job" 2)
  outlived_save "$T/run"
  launcher_is torchrun preemption 'lives until the final save is durable'
  lift_hold "$job"
  wait_for 90 has_begun 2
  wait_for 60 is_past $(($(committed_step "$T/run") + 3))
  hurry
  run -0 as_user cairn resize "$job" 1
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(grep -oP '^[0-9](?= ranks? begin)' "$T/broken.out" | paste -sd ' ') == '4 2 1' ]]
  [[ $(losses broken | cut -d ' ' -f 1 | sort -nu | wc -l) == 39 ]]
  equal_losses broken 1e-5
  as_root scancel "$high"
  launcher_is torchrun 'the program has ended' 'ends with it'

  as_user rm hurry
  job=$(gpt cancelled --job-name=other --nodes=1)
  wait_for 90 is_past 3 cancelled
  as_user scancel "$job"
  wait_for 25 nodes_idle 4
  job_is "$job" CANCELLED
  run ! committed_step "$T/other"
  launcher_is torchrun scancel 'ends at once'
}

@test "a GPT of torchrun comes to its time limit, and goes on after its requeue with the losses of an undisturbed run" {
  local job epochs=2 script=torchrun.sbatch  # slow steps of a minute and a half: longer than it takes until the notice
  example
  torchrun_script
  hurry
  job=$(gpt whole --nodes=1 --checkpoint=off --job-name=whole)
  wait_for 90 job_has_ended "$job"

  as_user rm hurry
  job=$(gpt broken --job-name=run --nodes=1 --time=2 --requeue --open-mode=append)
  wait_for 90 is_past 3
  watch torchrun.0
  wait_for 120 grep -q '^cairn: time limit; .* s left: saving' "$T/broken.out"
  outlived_save "$T/run"
  launcher_is torchrun 'time limit' 'lives until the final save is durable'
  hurry
  lift_hold "$job"
  wait_for 90 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(grep -cP '^1 ranks? begin' "$T/broken.out") == 2 ]]
  diff <(losses broken | sort -nu) <(losses whole) >&2
}
