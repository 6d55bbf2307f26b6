# A function that submitit runs, saved and resumed by Cairn. Needs a Python with submitit, which CAIRN_TEST_TORCH_PYTHON names.
load helpers

# work: puts the function into $T, with what submits it and waits for its result (submitted.py STEPS SUBMITIT-OPTION …).
work() {
  as_user "${CAIRN_TEST_TORCH_PYTHON:-false}" -c 'import submitit' || skip 'CAIRN_TEST_TORCH_PYTHON names no Python with submitit'
  as_user tee work.py >/dev/null <<'PYTHON'
import ctypes
import os
import time

import cairn


def train(steps):
    """Each rank's sum over the steps; with the step at which this life began."""
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    total = ctypes.c_double(rank)
    session = cairn.Session()
    session.add_array("total", "F64", (size,), [cairn.Piece((rank,), (1,), ctypes.addressof(total))])
    began = session.restore().step
    for step in range(began, steps):
        total.value = total.value * 1.001 + step
        session.step(step + 1)
        if not os.path.exists("hurry"):
            time.sleep(0.1)
        with open("steps", "a") as steps_made:
            print(step + 1, file=steps_made)
    session.finalize()
    return began, total.value
PYTHON
  as_user tee submitted.py >/dev/null <<'PYTHON'
import sys

import submitit

import work

executor = submitit.AutoExecutor(folder="log", cluster="slurm")
executor.update_parameters(nodes=2, tasks_per_node=1, timeout_min=10, slurm_partition="low", slurm_srun_args=sys.argv[2:],
                           slurm_additional_parameters={"requeue": True, "open_mode": "append"})
job = executor.submit(work.train, int(sys.argv[1]))
print(job.job_id, flush=True)
print(*job.results(), flush=True)
PYTHON
}

submitted() {
  local package
  package=$(find "$CAIRN_PREFIX" -path '*/cairn/python/cairn/__init__.py' -printf '%h/..\n')
  as_user env PYTHONPATH="$package:$T" "$CAIRN_TEST_TORCH_PYTHON" submitted.py "$@"
}

has_made() { (($(sort -n "$T/steps" | tail -n 1) > $1)); }

@test "a function that submitit runs is preempted, requeued by Cairn, and returns what it returns undisturbed" {
  local job high result
  work
  as_user touch hurry
  result=$(submitted 400 --checkpoint=off | tail -n 1)
  as_user rm hurry steps

  submitted 400 --checkpoint=10m --checkpoint-dir=run >"$T/submitted.log" 3>&- &
  wait_for 60 has_made 3
  job=$(head -n 1 "$T/submitted.log")
  high=$(preempt_job "$job" 3)
  as_user touch hurry
  as_root scancel "$high"
  lift_hold "$job"
  wait $!
  job_is "$job" COMPLETED
  [[ $(job_field "$job" Restarts) == 1 ]]
  echo "undisturbed: $result; preempted: $(tail -n 1 "$T/submitted.log")" >&3
  [[ $(tail -n 1 "$T/submitted.log") =~ ^\([1-9][0-9]*,\ ([^,]*)\)\ \([1-9][0-9]*,\ ([^,]*)\)$ ]]
  [[ "(0, ${BASH_REMATCH[1]}) (0, ${BASH_REMATCH[2]})" == "$result" ]]
}
