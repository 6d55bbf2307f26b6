# The plugin by itself: options, hand-over, injection, epilog. A stand-in (tests/plugin/stand_in_host) takes the part of `cairn host`.
load helpers

setup_file() {
  conf=$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf
  cp "$conf" "$BATS_FILE_TMPDIR/cairn.conf"
}

teardown_file() { cat "$BATS_FILE_TMPDIR/cairn.conf" | as_root tee "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf" >/dev/null; }

# plugin [ARGUMENT …]: the plugin's line in plugstack.conf, with the stand-in as host process unless an argument says otherwise.
plugin() {
  local line
  as_user mkdir -p host
  as_user tee host/cairn <"$BATS_TEST_DIRNAME/../plugin/stand_in_host" >/dev/null
  as_user chmod 755 host/cairn
  line=$(sed -E "s# bin=\S+# bin=$T/host/cairn#" "$BATS_FILE_TMPDIR/cairn.conf")
  echo "$line $*" | as_root tee "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf" >/dev/null
}

no_plugin() { as_root tee "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf" </dev/null >/dev/null; }

answer() { as_user tee host/answer >/dev/null; }

host_variable() { grep -oP "^$1=\K.*" "$T/host/host.env"; }

script() { { echo '#!/bin/bash'; cat; } | as_user tee script >/dev/null && as_user chmod 755 script; }

readonly show_ours='/usr/bin/env | /bin/grep -E "^(LD_PRELOAD|SLURM_CAIRN_)" | /usr/bin/sort'
token=$(printf '%064d' 7)

@test "srun, sbatch and salloc list every option in --help" {
  plugin
  for command in srun sbatch salloc; do
    run -0 as_user $command --help
    for option in '' -dir -resume -require -local -on -keep -mode -notice -after -max-lives -strikes -mtbf -signal -attach -rehearse; do
      [[ $output == *"--checkpoint$option"[=\ ]* ]]
    done
  done
}

@test "12: srun, sbatch and salloc refuse bad values at submit, with the accepted forms" {
  plugin
  script <<<hostname
  for command in srun sbatch salloc; do
    run as_user $command --checkpoint=10x ./script
    ((status != 0))
    [[ $output == *"--checkpoint=10x is not accepted. 10 what? 10s, 10m, 10h or 10steps. Accepted: on, off, auto, a duration"* ]]
    run as_user $command --checkpoint-on=preempt,sunset ./script
    ((status != 0))
    [[ $output == *"Accepted: all, or a comma-separated list of preempt, timelimit, request, interval, end"* ]]
    run as_user env CAIRN_CHECKPOINT=10 $command ./script
    ((status != 0))
    [[ $output == *"CAIRN_CHECKPOINT=10 is not accepted"* ]]
    run as_user env CAIRN_KEEP=3 $command --checkpoint ./script
    ((status != 0))
    [[ $output == *"CAIRN_KEEP=3 is not accepted. Did you mean last=3?"* ]]
  done
  [[ -z $(squeue --noheader) ]]
}

@test "a bad variable stops no command that does not ask for checkpoints" {
  plugin
  run -0 as_user env CAIRN_KEEP=3 srun true
}

@test "12: a value that stands apart from --checkpoint is refused before it runs as a program" {
  plugin
  for value in 10 10m 500steps auto; do
    for command in srun salloc; do
      run as_user $command --checkpoint $value true
      ((status != 0))
      [[ $output == *"must be joined with '=': --checkpoint=$value"* ]]
    done
  done
  run -0 as_user srun --checkpoint bash -c 'echo ran' --checkpoint 10
  [[ $output == ran ]]
}

@test "8: without --checkpoint environment, signals and descriptors of a task are those without the plugin" {
  script <<'SCRIPT'
/usr/bin/env | sort
grep -E '^(Sig|Shd)' /proc/self/status
ls /proc/self/fd
grep -o ' /.*' /proc/self/maps | sort -u
SCRIPT
  no_plugin
  as_user srun --nodelist=n1 ./script >"$BATS_TEST_TMPDIR/without"
  as_user srun --nodelist=n1 ./script >"$BATS_TEST_TMPDIR/again"
  plugin
  as_user srun --nodelist=n1 ./script >"$BATS_TEST_TMPDIR/with"
  # Job ids, ports and pids differ from one step to the next: what differs between two steps without the plugin is compared by name alone.
  local changing
  changing=$(diff "$BATS_TEST_TMPDIR/without" "$BATS_TEST_TMPDIR/again" | grep -oP '^[<>] \K\w+(?==)' | sort -u | paste -sd '|')
  [[ -n $changing ]]
  changing+='|SLURM_JOB_(START|END)_TIME'  # of two steps within one second they are equal
  diff <(sed -E "s/^($changing)=.*/\1/" "$BATS_TEST_TMPDIR/without") <(sed -E "s/^($changing)=.*/\1/" "$BATS_TEST_TMPDIR/with")
  [[ ! -e $T/host/host.env ]]
}

# calls_of_task NAME: the system calls that a task on n1 makes from its birth until it becomes its program, in $BATS_TEST_TMPDIR/NAME; but for those
# of the allocator, which go by the lengths of strings.
calls_of_task() {
  local traces=$BATS_TEST_TMPDIR/$1.traces slurmd
  slurmd=$(cat "$CAIRN_DEVCLUSTER/run/slurmd-n1.pid")
  mkdir "$traces"
  as_root strace --follow-forks --output-separately --attach="$slurmd" --output="$traces/of" 2>"$traces/said" 3>&- &
  wait_for 60 grep -q attached "$traces/said"
  as_user srun --nodelist=n1 /bin/true
  wait_for 60 cluster_is_idle
  as_root kill "$(grep -oP '^TracerPid:\s*\K\d+' "/proc/$slurmd/status")"
  wait $! || true  # the signal's status
  sed '/^execve("\/bin\/true"/q' "$(grep -l '^execve("/bin/true"' "$traces"/of.*)" | grep -oP '^\w+(?=\()' | grep -vxE 'brk|futex|madvise|mmap|mprotect|munmap' \
    >"$BATS_TEST_TMPDIR/$1"
}

@test "8: without --checkpoint a task takes no other way to its program than without the plugin, call by call" {
  as_root strace --output=/dev/null true || skip "processes must not be traced here"
  no_plugin
  calls_of_task without
  plugin
  calls_of_task with
  [[ $(tail -n 1 "$BATS_TEST_TMPDIR/without") == execve && $(wc -l <"$BATS_TEST_TMPDIR/without") -ge 20 ]]
  diff "$BATS_TEST_TMPDIR/without" "$BATS_TEST_TMPDIR/with" >&2
}

@test "a protected task finds the token, the library and its node, also with --export=NONE" {
  plugin
  for export in ALL NONE; do
    run -0 --separate-stderr as_user srun --nodelist=n2 --export=$export --checkpoint /bin/bash -c "echo STEPD=\$PPID; $show_ours"
    [[ ${lines[0]} =~ ^STEPD=([0-9]+)$ ]]
    [[ ${lines[1]} =~ ^LD_PRELOAD=(.*)/cairn/libcairn_preload.so$ ]]
    [[ ${lines[2]} == SLURM_CAIRN_DIR=/scratch/run ]]
    [[ ${lines[3]} == SLURM_CAIRN_EPILOG=1 ]]
    [[ ${lines[4]} == SLURM_CAIRN_LIB=*/libcairn.so ]]
    [[ ${lines[5]} == SLURM_CAIRN_NODE=n2 ]]
    [[ ${lines[6]} == "SLURM_CAIRN_STEPD=${lines[0]#STEPD=}" ]]
    [[ ${lines[7]} == SLURM_CAIRN_TOKEN=$token ]]
    ((${#lines[@]} == 8))
  done
}

@test "a task of --checkpoint-attach=torch finds the hook in front of its own PYTHONPATH" {
  plugin
  answer <<ANSWER
env SLURM_CAIRN_TOKEN=$token
env SLURM_CAIRN_ATTACH=torch
end
ANSWER
  run -0 --separate-stderr as_user env PYTHONPATH=/own srun --checkpoint --checkpoint-attach=torch /bin/bash -c 'echo "$PYTHONPATH"'
  hook=${output%:/own}
  [[ $hook == */lib*/cairn/python/attach && $output == *:/own ]]
  [[ -r $hook/sitecustomize.py && -r $hook/../cairn/torch/unmodified.py ]]
}

@test "the host process learns job, step, options and the site's arguments, and not the user's preload" {
  plugin keep=last=5 max_lives_limit=9 require
  run -0 as_user env CAIRN_SITE_DIRS=/forged LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6 srun -N2 -n3 --checkpoint --checkpoint-dir=/d true
  [[ $(host_variable CAIRN_HOST_JOB) =~ ^[0-9]+$ ]]
  [[ $(host_variable CAIRN_HOST_STEP) == 0 ]]
  [[ $(host_variable CAIRN_HOST_RESTART) == 0 ]]
  [[ $(host_variable CAIRN_HOST_NTASKS) == 3 ]]
  [[ $(host_variable CAIRN_PLUGIN_CAIRN_CHECKPOINT) == auto ]]
  [[ $(host_variable CAIRN_PLUGIN_CAIRN_DIR) == /d ]]
  [[ $(host_variable CAIRN_SITE_KEEP) == last=5 ]]
  [[ $(host_variable CAIRN_SITE_MAX_LIVES_LIMIT) == 9 ]]
  [[ $(host_variable CAIRN_SITE_REQUIRE) == yes ]]
  run ! host_variable CAIRN_SITE_DIRS
  run ! host_variable LD_PRELOAD
}

@test "the site's and the environment's --checkpoint turn it on, and off wins over both" {
  plugin
  run -0 --separate-stderr as_user env CAIRN_CHECKPOINT=5m srun bash -c "$show_ours"
  [[ $output == *SLURM_CAIRN_TOKEN=$token* ]]
  plugin checkpoint=5m
  run -0 --separate-stderr as_user srun bash -c "$show_ours"
  [[ $output == *SLURM_CAIRN_TOKEN=$token* ]]
  run -0 --separate-stderr as_user env CAIRN_CHECKPOINT=5m srun --checkpoint=off bash -c "$show_ours"
  [[ -z $output ]]
}

@test "the shim is appended to the user's own LD_PRELOAD, however long, and only once" {
  plugin
  own=$(printf '/lib/x86_64-linux-gnu/libm.so.6:%.0s' {1..300})/lib/x86_64-linux-gnu/libdl.so.2
  run -0 --separate-stderr as_user srun --export=ALL,LD_PRELOAD="$own" --checkpoint bash -c 'echo $LD_PRELOAD'
  [[ $output == "$own:"*/cairn/libcairn_preload.so ]]
  run -0 --separate-stderr as_user srun --export=ALL,LD_PRELOAD="${output##*:}" --checkpoint bash -c 'echo $LD_PRELOAD'
  [[ $output == /*/cairn/libcairn_preload.so && $output != *:* ]]
}

@test "a batch job's own sruns inherit --checkpoint, their own value wins, and the script itself is left alone" {
  plugin
  script <<SCRIPT
$show_ours
echo nested
srun bash -c 'echo \$SLURM_CAIRN_TOKEN'
grep ^CAIRN_PLUGIN_CAIRN_CHECKPOINT $T/host/host.env
srun --checkpoint=7m true
grep ^CAIRN_PLUGIN_CAIRN_CHECKPOINT $T/host/host.env
srun --checkpoint true
grep ^CAIRN_PLUGIN_CAIRN_CHECKPOINT $T/host/host.env
SCRIPT
  as_user sbatch --wait --open-mode=append --checkpoint=5m -o out script
  diff "$T/out" - <<OUT
nested
$token
CAIRN_PLUGIN_CAIRN_CHECKPOINT=5m
CAIRN_PLUGIN_CAIRN_CHECKPOINT=7m
CAIRN_PLUGIN_CAIRN_CHECKPOINT=auto
OUT
  as_user sbatch --wait --open-mode=append --checkpoint --export=ALL,SLURM_CAIRN_TOKEN="$token" -o forged script
  run ! grep LD_PRELOAD "$T/forged"
  as_user sbatch --wait --open-mode=append --checkpoint -o bare script
  [[ $(sed -n 3p "$T/bare") == CAIRN_PLUGIN_CAIRN_CHECKPOINT=auto ]]
}

@test "an --overlap step with --checkpoint=off has nothing, even when it starts inside a protected step" {
  plugin
  script <<SCRIPT
unset LD_PRELOAD
srun --overlap --checkpoint=off bash -c '$show_ours'
echo done
SCRIPT
  run -0 --separate-stderr as_user srun --checkpoint ./script
  [[ $output == done ]]
}

@test "sbatch says once that a requeued job starts its output anew, unless it is told to append" {
  plugin
  script <<<true
  run -0 as_user sbatch --checkpoint script
  [[ $(grep -c -- --open-mode=append <<<"$output") == 1 ]]
  run -0 as_user sbatch --checkpoint --open-mode=append script
  [[ $output != *open-mode* ]]
  run -0 as_user sbatch script
  [[ $output != *open-mode* ]]
  script <<<$'#SBATCH --open-mode=append\n#SBATCH --checkpoint\ntrue'
  run -0 as_user sbatch script
  [[ $output != *open-mode* ]]
}

@test "the kill-switch file turns Cairn off: the step runs unprotected, or not at all with --checkpoint-require" {
  plugin off_file="$T/off"
  run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours"
  [[ $output == *SLURM_CAIRN_TOKEN* ]]
  as_user touch off
  run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours; echo ran"
  [[ $output == ran ]]
  [[ $stderr == "cairn: NOT PROTECTED: turned off by the administrator ($T/off exists)" ]]
  run -1 as_user srun --checkpoint --checkpoint-require echo ran
  [[ $output == *"turned off by the administrator"* && $output != *ran* ]]
}

@test "a refused step leaves the allocation usable, and no other step stays behind" {
  plugin
  answer <<<'fail no'
  script <<'SCRIPT'
srun --checkpoint echo ran
echo "rc $?"
srun echo next
for try in {1..300}; do [[ -z $(squeue --noheader --steps --format=%i) ]] && break; sleep 0.1; done  # Slurm hears of a step's end after srun
squeue --noheader --steps --format=%i
SCRIPT
  run -0 --separate-stderr as_user salloc --quiet ./script
  [[ $output == $'rc 1\nnext' ]]
}

@test "a directory outside the site's list is refused by the host process before anything is made there" {
  plugin bin="$CAIRN_PREFIX/bin/cairn" dirs=/work:"$T/keep"
  as_user mkdir keep
  run -1 as_user srun --checkpoint --checkpoint-dir="$T/keepsake" echo ran
  [[ $output == *"$T/keepsake"*"/work:$T/keep"* && $output != *ran* && ! -e $T/keepsake ]]
  run -0 as_user srun --checkpoint --checkpoint-dir="$T/keep/run" echo ran
  [[ $output == *ran* ]]
}

@test "what the host process says reaches the user, and its fail and off do what they say" {
  plugin
  answer <<<$'say resumes step 5\nenv SLURM_CAIRN_X=1 = 2\nend'
  run -0 --separate-stderr as_user srun --checkpoint bash -c 'echo $SLURM_CAIRN_X'
  [[ $output == "1 = 2" && $stderr == "cairn: resumes step 5" ]]
  answer <<<$'env SLURM_CAIRN_X=1\nfail the directory is busy'
  run -1 as_user srun --checkpoint echo ran
  [[ $output == *"cairn: the directory is busy"* && $output != *ran* ]]
  answer <<<$'env SLURM_CAIRN_X=1\noff nothing to save'
  run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours; echo ran"
  [[ $output == ran && $stderr == "cairn: nothing to save" ]]
}

@test "without a usable host process the step runs unprotected with one line, or not at all with --checkpoint-require" {
  plugin
  for fault in 'env PATH=/forged' 'nonsense'; do
    answer <<<"env SLURM_CAIRN_X=1"$'\n'"$fault"
    run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours; echo ran"
    [[ $output == ran && ${#stderr_lines[@]} == 1 && $stderr == "cairn: NOT PROTECTED: "*"their versions differ; run "* ]]
  done
  as_user touch host/leave
  answer <<<'env SLURM_CAIRN_X=1'
  run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours; echo ran"
  [[ $output == ran && $stderr == "cairn: NOT PROTECTED: "*"it ended early; run "* ]]
  as_user rm host/cairn
  run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours; echo ran"
  [[ $output == ran && ${#stderr_lines[@]} == 1 && $stderr == "cairn: NOT PROTECTED: could not start the host process $T/host/cairn: No such file"* ]]
  run -1 as_user srun --checkpoint --checkpoint-require echo ran
  [[ $output == *"could not start the host process"* && $output != *ran* ]]
}

@test "a host process that hangs holds the step for ten seconds, and is killed" {
  plugin
  answer </dev/null
  as_user touch host/hang
  local start=$SECONDS
  run -0 --separate-stderr as_user srun --checkpoint echo ran
  [[ $output == ran && $stderr == "cairn: NOT PROTECTED: "*"it did not answer within 10 s; run "* ]]
  ((SECONDS - start >= 9 && SECONDS - start <= 30))
  wait_for 60 test ! -e "/proc/$(cat "$T/host/host.pid")"
}

@test "the host process sees srun's end, also when srun is killed" {
  plugin
  as_user srun --checkpoint true
  wait_for 60 test -e "$T/host/host.ended"
  as_user rm host/host.ended
  as_user bash -c 'echo $$ >pid; exec srun --checkpoint sleep 600' 3>&- &
  wait_for 60 test -s "$T/pid"
  wait_for 60 bash -c '[[ $(squeue --noheader --steps) == *sleep* ]]'
  as_root kill -KILL "$(cat "$T/pid")"
  wait_for 60 test -e "$T/host/host.ended"
}

@test "a mistyped argument in plugstack.conf breaks no job, and lifts no limit" {
  plugin dris=/scratch
  run -0 as_user srun true
  run -0 --separate-stderr as_user srun --checkpoint bash -c "$show_ours; echo ran"
  [[ $output == ran ]]
  [[ $stderr == "cairn: NOT PROTECTED: plugstack.conf: dris=/scratch: no such argument"* ]]
}

@test "a node without the shim says so once, and runs its tasks unprotected without complaints of the loader" {
  plugin libdir=/nonexistent
  run -0 --separate-stderr as_user srun -n3 --checkpoint bash -c 'echo ran $LD_PRELOAD'
  [[ $output == $'ran\nran\nran' ]]
  [[ $(grep -c '/nonexistent/cairn/libcairn_preload.so cannot be read' <<<"$stderr") == 1 && $stderr != *"cannot be preloaded"* ]]
}

@test "the epilog removes the job's images of its own node, and follows no link" {
  plugin
  base=/dev/shm/cairn-$(as_user id -u)
  as_user mkdir -p -m 700 "$base" precious/deep
  as_user touch precious/file precious/deep/file
  job=$(submit images --nodelist=n1 <<SCRIPT
#!/bin/bash
mkdir -p $base/\$SLURM_JOB_ID.n1.abc/deep/er $base/\$SLURM_JOB_ID.n2.abc
touch $base/\$SLURM_JOB_ID.n1.abc/deep/er/image $base/\$SLURM_JOB_ID.n1.shield.0 $base/\$SLURM_JOB_ID.n2.abc/image $base/\$SLURM_JOB_ID.n12.x
ln -s $T/precious $base/\$SLURM_JOB_ID.n1.link
ln -s $T/precious $base/\$SLURM_JOB_ID.n1.abc/deep/link
SCRIPT
)
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  run ls "$base"
  as_user rm -rf "$base/$job.n2.abc" "$base/$job.n12.x"
  [[ $output == *"$job.n2.abc"* && $output == *"$job.n12.x"* && $output != *"$job.n1."* ]]
  [[ -e $T/precious/file && -e $T/precious/deep/file ]]
}

@test "the epilog is no stronger than the job's user, and takes no link for the user's folder" {
  as_user mkdir nvme
  plugin local="$T/nvme"  # the rules are those of /dev/shm, where another cluster of the user may be at work
  base=$T/nvme/cairn-$(as_user id -u)
  as_user mkdir -m 700 "$base"
  job=$(submit rooted --hold --nodelist=n1 <<<$'#!/bin/bash\ntrue')
  as_root mkdir "$base/$job.n1.root"
  as_root touch "$base/$job.n1.root/file"
  as_user mkdir "$base/$job.n1.user"
  as_user scontrol release "$job"
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  [[ $(ls "$base") == "$job.n1.root" ]]

  as_root rm -r "$base"
  as_user ln -s "$T" "$base"
  job=$(submit linked --nodelist=n1 <<SCRIPT
#!/bin/bash
mkdir $T/\$SLURM_JOB_ID.n1.abc
SCRIPT
)
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  [[ -d $T/$job.n1.abc ]]
}

@test "with epilog=off the node is left alone, and tasks are told so" {
  plugin epilog=off
  base=/dev/shm/cairn-$(as_user id -u)
  as_user mkdir -p -m 700 "$base"
  job=$(submit off --nodelist=n1 <<SCRIPT
#!/bin/bash
srun --checkpoint bash -c 'echo EPILOG=\$SLURM_CAIRN_EPILOG'
mkdir $base/\$SLURM_JOB_ID.n1.abc
SCRIPT
)
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  [[ $(cat "$T/off.out") == EPILOG= ]]
  as_user rmdir "$base/$job.n1.abc"
}

@test "the epilog also cleans the site's own local directory" {
  as_user mkdir nvme
  plugin local="$T/nvme"
  job=$(submit local --nodelist=n1 <<SCRIPT
#!/bin/bash
umask 077
mkdir -p $T/nvme/cairn-\$UID/\$SLURM_JOB_ID.n1.abc $T/nvme/cairn-\$UID/\$SLURM_JOB_ID.n2.abc
SCRIPT
)
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  [[ $(ls "$T/nvme/cairn-$(as_user id -u)") == "$job.n2.abc" ]]
}

@test "the site's limits bound what a user asks for, in one line, and a partition has defaults of its own" {
  plugin keep=last=5 max_drain=1GB/s partition:high:keep=last=7 partition:high:checkpoint
  run -0 --separate-stderr as_user srun --partition=high bash -c "$show_ours"
  [[ $output == *SLURM_CAIRN_TOKEN=$token* ]]
  [[ $(host_variable CAIRN_SITE_KEEP) == last=7 && $(host_variable CAIRN_SITE_MAX_DRAIN) == 1GB/s ]]
  run -0 --separate-stderr as_user srun bash -c "$show_ours"
  [[ -z $output ]]
  run -0 as_user srun --checkpoint true
  [[ $(host_variable CAIRN_SITE_KEEP) == last=5 ]]

  plugin bin="$CAIRN_PREFIX/bin/cairn" max_drain=100MB/s max_local=1kB
  run -0 --separate-stderr as_user env CAIRN_DRAIN_LIMIT=1GB/s srun --checkpoint --checkpoint-dir=run \
    bash -c 'echo "$SLURM_CAIRN_DRAIN_LIMIT $SLURM_CAIRN_LOCAL_LIMIT"; exec "$0" "$@"' "$toy" --steps 30 --step-us 0 --save-at 10 --wait-at 10
  [[ ${lines[0]} == "100MB/s 1kB" && $output == *$'\ndone 0'* ]]
  [[ $(grep -c 'is more than this site allows' <<<"$stderr") == 1 ]]
  [[ $stderr == *"cairn: CAIRN_DRAIN_LIMIT=1GB/s is more than this site allows: 100MB/s holds (max_drain in plugstack.conf)"* ]]
  [[ $stderr == *"are left in all, bounded by CAIRN_LOCAL_LIMIT. Each save is written to $T/run while the program stands still"* ]]
  [[ $(committed "$T/run") == *10* ]]
}
