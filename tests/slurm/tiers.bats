# Saves that every rank staged and whose files never became durable, taken up by the next step of the same job.
load helpers

readonly options='--steps 400 --step-us 4000'

# An attempt's folder is made when all ranks have staged.
attempt() { ls -d "$T"/run/step-*/ 2>/dev/null | grep -v '^$'; }
is_staged_and_not_durable() { [[ -n $(attempt) ]] && ! has_committed "$T/run"; }

@test "a step is killed while its directory is slow: the next step of the job resumes from the memory of the nodes" {
  local job
  job=$(submit toy --nodes=4 <<SCRIPT
#!/bin/bash
srun --ntasks=4 --export="ALL,$(slow_io 2000)" --checkpoint --checkpoint-dir=run $toy $options --save-at 50
srun --ntasks=8 --checkpoint --checkpoint-dir=run $toy $options
SCRIPT
  )
  wait_for 60 is_staged_and_not_durable
  as_user scancel --signal=KILL "$job.0"
  wait_for 60 job_has_ended "$job"
  cat "$T/toy.out"
  grep -E 'cairn: step [0-9]+ was staged by all 4 ranks and is not durable: writing it from the memory of the nodes' "$T/toy.out"
  grep -E 'cairn: rescued step [0-9]+' "$T/toy.out"
  [[ $(grep -c '^resumed 0 ' "$T/toy.out") == 4 ]]  # the first step's ranks, and none of the second's
  [[ $(toy_hash <"$T/toy.out") == $(undisturbed_toy_hash $options) ]]
}
