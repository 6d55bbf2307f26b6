# The epilog of a site that drains in it: what a killed job left complete in the memory of its nodes becomes durable.
load helpers

conf() { echo "$CAIRN_DEVCLUSTER/plugstack.conf.d/cairn.conf"; }
setup_file() { cp "$(conf)" "$BATS_FILE_TMPDIR/cairn.conf"; }
teardown_file() { as_root tee "$(conf)" <"$BATS_FILE_TMPDIR/cairn.conf" >/dev/null; }

# site [ARGUMENT …]: what plugstack.conf says besides.
site() { echo "$(cat "$BATS_FILE_TMPDIR/cairn.conf") $*" | as_root tee "$(conf)" >/dev/null; }

readonly options='--steps 400'
is_staged() { compgen -G "$T/$1/step-*/" >/dev/null; }

# killed DIR: a job on four nodes is killed when all ranks have staged and nothing is durable; its id. The epilogs have ended.
killed() {
  local job
  hold_saves
  job=$(submit "killed.$1" --nodes=4 <<SCRIPT
#!/bin/bash
srun --ntasks=4 --export="ALL,$(slow_io 0)" --checkpoint --checkpoint-dir=$1 $toy $options --step-us 4000 --save-at 50
SCRIPT
  )
  wait_for 60 is_staged "$1"
  as_user scancel --signal=KILL "$job"
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  [[ -z $(compgen -G "/dev/shm/cairn-$(id -u "$cluster_user")/$job.*") ]]
}

@test "a killed job's complete save is made durable by the epilogs where the site asks for it, and another job resumes from it; elsewhere it is removed" {
  local job dir
  for dir in removed drained; do
    if [[ $dir == drained ]]; then site epilog_drain=30s; else site; fi
    killed $dir
  done
  run ! committed_step "$T/removed"
  committed_step "$T/drained"
  grep -q '"event":"drained"' "$T/drained/journal.jsonl"
  run -0 as_user "$CAIRN_PREFIX/bin/cairn" verify drained
  run ! compgen -G "$T/drained/left-*"
  job=$(submit resumed --nodes=2 <<<$'#!/bin/bash\n'"srun --ntasks=6 --checkpoint --checkpoint-dir=drained $toy $options")
  wait_for 60 job_has_ended "$job"
  grep -q "^cairn: resumed at step $(grep -oP '"event":"drained".*"step":\K\d+' "$T/drained/journal.jsonl") " "$T/resumed.out"
  [[ $(toy_hash <"$T/resumed.out") == $(undisturbed_toy_hash $options) ]]
}

@test "epilogs that cannot drain in their time remove what is there, fail nobody, and leave the nodes idle" {
  local job
  site epilog_drain=2s
  hold_saves
  # One node's images go before its epilog comes: the others wait for it in vain.
  job=$(submit killed --nodes=4 <<SCRIPT
#!/bin/bash
srun --ntasks=4 --export="ALL,$(slow_io 0)" --checkpoint --checkpoint-dir=run $toy $options --step-us 4000 --save-at 50
rm -r /dev/shm/cairn-\$UID/\$SLURM_JOB_ID.\$SLURMD_NODENAME.*
SCRIPT
  )
  wait_for 60 is_staged run
  as_user scancel --signal=KILL "$job.0"
  wait_for 60 job_has_ended "$job"
  wait_for 60 cluster_is_idle
  [[ -z $(compgen -G "/dev/shm/cairn-$(id -u "$cluster_user")/$job.*") ]]
  run ! committed_step "$T/run"
  [[ $(sinfo --noheader --partition=low --format=%T) == idle ]]
}

@test "a drain that hangs is ended when its time is over: of it, too, nothing is left" {
  local hung
  as_user tee cairn >/dev/null <<SCRIPT
#!/bin/bash
if [[ \$1 == drain ]]; then touch $T/hung.\$\$; exec sleep 600; fi
exec $CAIRN_PREFIX/bin/cairn "\$@"
SCRIPT
  as_user chmod 755 cairn
  site epilog_drain=2s bin="$T/cairn"
  killed run
  [[ $(compgen -G "$T/hung.*" | wc -l) == 4 ]]
  for hung in "$T"/hung.*; do [[ ! -e /proc/${hung##*.} ]]; done
  run ! committed_step "$T/run"
  [[ $(sinfo --noheader --partition=low --format=%T) == idle ]]
}
