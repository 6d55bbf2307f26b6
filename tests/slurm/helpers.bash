# What the tests on the one-machine cluster share. A file begins with
#   load helpers
# and each test then finds an idle cluster of nodes n1 … n4 and an empty folder $T that belongs to the ordinary user, in which that user's
# commands run. After each test all jobs are cancelled, the nodes must become idle, and nothing of Cairn may be left in /dev/shm.

readonly devcluster=$BATS_TEST_DIRNAME/../../contrib/devcluster/devcluster
readonly examples=$CAIRN_PREFIX/libexec/cairn/examples
readonly heat2d=$examples/heat2d
readonly toy=$CAIRN_PREFIX/libexec/cairn/tests/cairn_toy  # tests/multiprocess/toy.cc: a rank without MPI
export PATH=$CAIRN_PREFIX/bin:$PATH
bats_require_minimum_version 1.5.0

setup() {
  eval "$("$devcluster" env)"
  cluster_user=$("$devcluster" shell id -un)
  T=$CAIRN_DEVCLUSTER/work/$(basename "$BATS_TEST_FILENAME" .bats)-$BATS_TEST_NUMBER
  cancel_all_jobs
  as_root rm -rf "$T"
  "$devcluster" shell mkdir "$T"
}

# bats ignores the failures of a teardown but for its last status.
teardown() {
  local status=0 left
  if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
    printf '%s\n' '==> what the last command said <==' "${output:-}"
    tail -n 40 "$T"/*.out "$T"/*.log 2>/dev/null
    squeue
    revive_nodes
  fi
  cancel_all_jobs || status=1
  if ! wait_for 60 no_local_images; then
    status=1
    left=$(local_images)
    echo "left behind: $left" >&2
    rm -rf $left
  fi
  if [[ -n ${BATS_TEST_COMPLETED:-} ]]; then "$devcluster" shell rm -rf "$T"; fi
  return $status
}

cancel_all_jobs() {
  squeue --noheader --format=%A | as_root xargs --no-run-if-empty scancel
  wait_for 60 cluster_is_idle
  grep -oP " \K$T/\S+(?= )" /proc/self/mounts | as_root xargs --no-run-if-empty umount
}

# revive_nodes: whatever nodes are down, by the test's own hand, are up again when it returns.
revive_nodes() {
  local node
  for node in $(sinfo --noheader --partition=low --Node --states=down --format=%N); do
    as_root scontrol update NodeName="$node" State=RESUME
  done
  "$devcluster" up
}

# as_other_user COMMAND …: as a user who has nothing to do with the jobs.
as_other_user() { as_root setpriv --reuid=cairn-dev2 --regid=cairn-dev2 --clear-groups env PATH="$PATH" "$@"; }

as_root() {
  if ((EUID == 0)); then "$@"; else sudo env SLURM_CONF="$SLURM_CONF" "$@"; fi
}

# as_user COMMAND …: as the ordinary user, in $T.  as_user env NAME=VALUE COMMAND … gives it a variable.
as_user() { "$devcluster" shell env --chdir="$T" PATH="$PATH" "$@"; }

# wait_for SECONDS COMMAND …: until the command succeeds; fails, with what it says then, when the time has passed.
wait_for() {
  local bound=$1 end=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    if ((SECONDS >= end)); then
      echo "after $bound s still not: $*" >&2
      "$@"
      return
    fi
    sleep 0.1
  done
}

# A node that still completes a job counts as idle for sinfo's --states, and gets no job; nor does one whose CPUs are not all given back.
cluster_is_idle() {
  [[ -z $(squeue --noheader) && $(sinfo --noheader --partition=low --Node --format='%T %C' | grep -c '^idle 0/') == 4 ]]
}

# What lies in /dev/shm/cairn-<uid>/<job>.<node>.… of jobs of this cluster; another cluster of the same user may be at work.
local_images() {
  local entry job
  for entry in "/dev/shm/cairn-$(id -u "$cluster_user")"/*; do
    job=$(basename "$entry")
    if [[ -e $entry ]] && scontrol show job "${job%%.*}" &>/dev/null; then echo "$entry"; fi
  done
}
no_local_images() { [[ -z $(local_images) ]]; }

# --- Jobs -----------------------------------------------------------------------------------------------------------------------------

# job_field JOB FIELD: a field of `scontrol show job`, for example JobState, Reason, Restarts, NodeList, ExitCode.
job_field() { scontrol --oneliner show job "$1" | grep -oP "(?<= $2=)\S+"; }

# job_is JOB STATE[|STATE …]
job_is() { [[ $(job_field "$1" JobState) =~ ^($2)$ ]]; }

# The host process leaves after the step, and says its last word then.
job_has_ended() { job_is "$1" 'COMPLETED|FAILED|CANCELLED|TIMEOUT|PREEMPTED|NODE_FAIL' && no_host_process "$1"; }

# has_left JOB: a job that was disturbed is on no node any more.
has_left() { ! job_is "$1" 'RUNNING|COMPLETING' && no_host_process "$1"; }

no_host_process() {
  local pid
  for pid in $(pgrep -x cairn); do
    if as_root grep -qzx "CAIRN_HOST_JOB=$1" "/proc/$pid/environ" 2>/dev/null; then return 1; fi
  done
}

# submit NAME [SBATCH OPTION …] <<< script: writes the script to $T/NAME.sbatch and submits it; prints the job id. Output: $T/NAME.out
submit() {
  local name=$1
  shift
  cat | as_user tee "$name.sbatch" >/dev/null
  as_user sbatch --parsable --job-name="$name" --output="$name.out" --open-mode=append "$@" "$name.sbatch"
}

# submit_heat2d [SBATCH OPTION …] -- [HEAT2D OPTION …]: one rank per node unless said otherwise. Output: $T/heat2d.out; what the program
# itself notes of its lives and steps, outside Cairn: $T/heat2d.log. With --step-ms it steps slowly until `hurry`.
submit_heat2d() {
  local options=()
  while (($# > 0)) && [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  submit heat2d "${options[@]}" <<SCRIPT
#!/bin/bash
srun --mpi=pmix $heat2d --log heat2d.log --hurry hurry $*
SCRIPT
}

# hurry: programs that were started with `--hurry hurry` make the rest of their steps without a pause. Before, a run lasts a minute or so: however
# fast the machine is it has not ended when something is done to it, and however slow, something can be done to it in time.
hurry() { as_user touch hurry; }

# launchers: makes $T/launch, which runs its arguments by another kind of launcher on each rank: those that are named in `launched`, in the order of
# ranks. Each leaves its pid in $T/launcher.RANK, and, if it goes on after the program, something in $T/after.RANK.
launchers() {
  launched=(bash env timeout time python3)
  # Not where a sandbox forbids to ask for NUMA policies.
  if as_user numactl --physcpubind=all true &>/dev/null; then launched+=(numactl); fi
  [[ $(documented_launchers) == $(printf '%s\n' bash env mpirun numactl python3 time timeout torchrun) ]]
  as_user tee launch >/dev/null <<SCRIPT
#!/bin/bash
launched=(${launched[*]})
echo \$\$ >launcher.\$SLURM_PROCID
case \${launched[SLURM_PROCID]} in
  bash) "\$@"; status=\$?; echo went on >after.\$SLURM_PROCID; exit \$status ;;
  env) exec env LAUNCHED=yes "\$@" ;;
  timeout) exec timeout 1d "\$@" ;;
  time) exec /usr/bin/time --output=after.\$SLURM_PROCID "\$@" ;;
  python3) exec python3 -c 'import os, subprocess, sys
status = subprocess.call(sys.argv[1:])
print("went on", file=open("after." + os.environ["SLURM_PROCID"], "w"))
sys.exit(status)' "\$@" ;;
  numactl) exec numactl --physcpubind=all "\$@" ;;
esac
SCRIPT
  as_user chmod +x launch
}

# The table of docs/launchers.md: `documented_launchers` has the names of its rows, `documented NAME COLUMN` what it says.
readonly launchers_page=$BATS_TEST_DIRNAME/../../docs/launchers.md
documented_launchers() { grep -oP '^\| `\K[^`]+' "$launchers_page" | sort; }
documented() {
  awk -F ' *[|] *' -v name="\`$1\`" -v column="$2" '
    $2 == "launcher" { for (i = 2; i <= NF; i++) at[$i] = i }
    index($2, name) == 1 && at[column] { print $at[column] }' "$launchers_page"
}

# launcher_is NAME COLUMN WORDS: what a test has seen; the table must say the same.
launcher_is() {
  echo "$1, $2: $3" >&3
  diff <(documented "$1" "$2") <(echo "$3") >&2
}

# committed_at DIR: when the newest checkpoint came to exist (the change time of its manifest is its rename), in ns since 1970.
committed_at() { stat --format=%.9Z "$1/$(committed "$1" | tail -n 1)/manifest.json" | tr -d .; }

# gone_at PID WATCHED: makes the file WATCHED, then waits until the process has ended, at most 60 s; prints when, in ns.
gone_at() {
  python3 -c 'import os, select, sys, time
end = select.poll()
end.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
open(sys.argv[2], "w").close()
sys.exit(1) if not end.poll(60000) else print(time.time_ns())' "$@"
}

# watch NAME …: from now on it is noted when the process whose pid is in $T/NAME ends. outlived_save DIR, later: waits for the end of all of them, each
# of which must come after that of the final save.
watch() {
  local name
  watched=("$@")
  for name in "$@"; do gone_at "$(cat "$T/$name")" "$BATS_TEST_TMPDIR/watched.$name" >"$BATS_TEST_TMPDIR/gone.$name" & watchers+=($!); done
  for name in "$@"; do wait_for 60 test -e "$BATS_TEST_TMPDIR/watched.$name"; done
}
outlived_save() {
  local name
  wait "${watchers[@]}"
  for name in "${watched[@]}"; do (($(cat "$BATS_TEST_TMPDIR/gone.$name") > $(committed_at "$1"))); done
}

# is_launcher RANK: its process is not the program itself.
is_launcher() { [[ $(cat "/proc/$(cat "$T/launcher.$1")/comm") != heat2d ]]; }

# task_pid JOB RANK: the pid of a task of a job's heat2d.
task_pid() {
  local pid
  for pid in $(pgrep -x heat2d); do
    if as_root grep -qzx "SLURM_JOB_ID=$1" "/proc/$pid/environ" && as_root grep -qzx "SLURM_PROCID=$2" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}

# undisturbed_hash [HEAT2D OPTION …]: the hash of a run on one rank without Cairn; computed once per run of the tests.
undisturbed_hash() {
  local known
  known=$BATS_RUN_TMPDIR/hash.$(tr -c 'a-z0-9\n' _ <<<"$*")
  if [[ ! -e $known ]]; then
    as_user srun --mpi=pmix --nodes=1 --ntasks=1 "$heat2d" "$@" --step-ms 0 | grep -oP '(?<=, hash )\w+' >"$known.new"
    mv "$known.new" "$known"
  fi
  cat "$known"
}

# preempt_job JOB [NODES]: a job of the higher partition takes nodes (2) of a running job; returns when that job has left all of its nodes. Prints
# the id of the higher job, which keeps its nodes until it is cancelled.
preempt_job() {
  local high
  high=$(submit high --partition=high --nodes="${2:-2}" <<<$'#!/bin/bash\nexec sleep 600')
  wait_for 90 job_is "$high" RUNNING
  wait_for 90 has_left "$1"
  echo "$high"
}

# lift_hold JOB: a requeued job waits two minutes before it may start; its owner may cut that short. Not to less than a second: nodes take
# a start in the second of the requeue for the life that they have just revoked ("Job credential revoked"), and the job fails.
lift_hold() {
  wait_for 60 job_is "$1" PENDING
  as_user scontrol update JobId="$1" StartTime=now+2
}

# slow_io: builds tests/slurm/slow_io.c. `--export=ALL,$(slow_io MS)` of srun or sbatch then makes each mkdir, fsync and rename late; and no save
# is committed from `hold_saves` to `release_saves`.
slow_io() {
  [[ -e $T/slow_io.so ]] || as_user cc -shared -fPIC -o slow_io.so -x c - -ldl <"$BATS_TEST_DIRNAME/slow_io.c"
  echo "LD_PRELOAD=$T/slow_io.so,SLOW_IO_MS=$1,SLOW_IO_HOLD=$T/saves_held"
}
hold_saves() { as_user touch saves_held; }
release_saves() { as_user rm saves_held; }

# --- heat2d's own notes ---------------------------------------------------------------------------------------------------------------

heat2d_steps_run() { grep -c ' step=[0-9]*$' "$T/heat2d.log"; }
heat2d_step() { grep -oP ' step=\K[0-9]+$' "$T/heat2d.log" 2>/dev/null | tail -n 1 | grep . || echo 0; }
heat2d_is_past() { (($(heat2d_step) > $1)); }
heat2d_hash() { grep -oP ' hash=\K\w+' "$T/heat2d.log" | tail -n 1; }

# heat2d_start LIFE FIELD: step, nodes or ranks with which a life (0, 1, …) began.
heat2d_start() { grep -oP "^life=$1 start .*\b$2=\K\S+" "$T/heat2d.log"; }

# steps_lost LAST [LOG]: how many steps were made twice. A life begins with a line "start step=S" and makes the steps S + 1 …; the last one ends
# with step LAST. Fails when a step is missing.
steps_lost() {
  awk -v last="$1" -F= '
    / start step=/ { split($3, at, " "); if (lives++) lost += step - at[1]; step = at[1]; next }
    / step=[0-9]+$/ { if ($3 != step + 1) { print "after step " step " came " $3; bad = 1; exit }; step = $3 }
    END { if (!bad) print lost + 0; exit bad || step != last }' "${2:-$T/heat2d.log}"
}

# ran_again JOURNAL: for each life after the first, how long it took from the event that ended the one before it (a signal, a rank that was lost; of
# one that was killed outright, the last that it noted) until it had restored.
ran_again() {
  python3 - "$1" <<'SCRIPT'
import datetime, json, sys

ended, restored = {}, {}
for line in map(json.loads, open(sys.argv[1], encoding="utf-8")):
    epoch, event = line["epoch"], line["event"]
    time = datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
    last, is_event = ended.get(epoch, (None, False))
    if not is_event:
        ended[epoch] = time, event in ("ending", "gone")
    if event == "restore":
        restored[epoch] = time
print(", ".join(f"{(restored[life + 1] - ended[life][0]).total_seconds():.1f} s" for life in sorted(restored) if life + 1 in restored) or "0 s, in its only life")
SCRIPT
}

# --- The toy --------------------------------------------------------------------------------------------------------------------------

# toy_hash < output of all ranks: the whole array's hash, from the ranks' own.
toy_hash() {
  local part hash=0
  while read -r part; do hash=$((hash ^ 0x$part)); done < <(grep -oP '\bhash \K[0-9a-f]{16}$')
  printf '%016x\n' "$hash"
}

# undisturbed_toy_hash [TOY OPTION …]: the hash of a run of one rank without Cairn.
undisturbed_toy_hash() { as_user "$toy" "$@" --step-us 0 | toy_hash; }

# --- Checkpoints ----------------------------------------------------------------------------------------------------------------------

# committed_step DIR: the step of the newest committed checkpoint; fails when there is none.
committed_step() {
  local manifest
  manifest=$(ls -d "$1"/step-*/manifest.json 2>/dev/null | sort | tail -n 1)
  [[ -n $manifest ]] && grep -oP 'step-0*\K[0-9]+(?=\.)' <<<"${manifest#"$1"}"
}

# committed DIR: the names of the committed checkpoints, the oldest first.
committed() { (cd "$1" && ls -d step-*/manifest.json 2>/dev/null | sed 's#/.*##' | sort); }

# has_committed DIR [N]: at least N (1) checkpoints.
has_committed() { (($(committed "$1" 2>/dev/null | wc -l) >= ${2:-1})); }

# has_attempt DIR: a save whose files are written is not committed.
has_attempt() {
  local shard
  for shard in "$1"/step-*/shard-*; do
    if [[ -e $shard && ! -e ${shard%/*}/manifest.json ]]; then return; fi
  done
  return 1
}

# step_of CHECKPOINT: the step in a checkpoint's name.
step_of() { grep -oP '^step-0*\K[0-9]+' <<<"$1"; }
