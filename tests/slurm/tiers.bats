# Saves that every rank staged and whose files never became durable, taken up by the next step of the same job.
load helpers

readonly options='--steps 400'

# An attempt's folder is made when all ranks have staged.
attempt() { ls -d "$T"/run/step-*/ 2>/dev/null | grep -v '^$'; }
# Of the second step: ranks of the first one may have come to their end before the kill reached them.
second_hash() { sed '1,/ was staged by all /d' "$T/toy.out" | toy_hash; }
is_staged() { [[ -n $(attempt) ]]; }

@test "a step is killed while its directory is slow: the next step of the job resumes from the memory of the nodes" {
  local job
  hold_saves
  job=$(submit toy --nodes=4 <<SCRIPT
#!/bin/bash
srun --ntasks=4 --export="ALL,$(slow_io 0)" --checkpoint --checkpoint-dir=run $toy $options --step-us 4000 --save-at 50
srun --ntasks=8 --checkpoint --checkpoint-dir=run $toy $options --step-us 4000
SCRIPT
  )
  wait_for 60 is_staged
  as_user scancel --signal=KILL "$job.0"
  wait_for 60 job_has_ended "$job"
  cat "$T/toy.out"
  grep -E 'cairn: step [0-9]+ was staged by all 4 ranks and is not durable: writing it from the memory of the nodes' "$T/toy.out"
  grep -E 'cairn: rescued step [0-9]+' "$T/toy.out"
  [[ $(grep -c '^resumed 0 ' "$T/toy.out") == 4 ]]  # the first step's ranks, and none of the second's
  [[ $(second_hash) == $(undisturbed_toy_hash $options) ]]
}

@test "with copies on partner nodes a node may be lost with its memory: the next step, without it, resumes from its partner" {
  local job
  hold_saves
  job=$(submit toy --nodes=4 <<SCRIPT
#!/bin/bash
export CAIRN_PARTNER=yes
lost=\$(scontrol show hostnames | tail -n 1)
CAIRN_LOG=debug srun --ntasks=4 --export="ALL,$(slow_io 0)" --checkpoint --checkpoint-dir=run $toy $options --step-us 4000 --save-at 50
rm -r /dev/shm/cairn-\$UID/\$SLURM_JOB_ID.\$lost.*
srun --exclude="\$lost" --nodes=3 --ntasks=6 --checkpoint --checkpoint-dir=run $toy $options --step-us 4000
SCRIPT
  )
  wait_for 60 grep -q 'the partners hold step' "$T/toy.out"
  wait_for 60 is_staged
  as_user scancel --signal=KILL "$job.0"
  wait_for 60 job_has_ended "$job"
  cat "$T/toy.out"
  grep -E 'cairn: rescued step [0-9]+' "$T/toy.out"
  [[ $(grep -c '^resumed 0 ' "$T/toy.out") == 4 ]]
  [[ $(second_hash) == $(undisturbed_toy_hash $options) ]]
}
