# SIGKILL to every process in the middle of a save.
load helpers

@test "4: killed 20 times at random moments of a save, a run always resumes from its newest checkpoint and ends with the same hash" {
  local job phase kills=$((${CAIRN_TEST_FULL:-0} ? 100 : 20))
  local options="--nx 1536 --ny 1024 --steps $((15 * kills)) --step-ms 50"
  job=$(as_user salloc --no-shell --nodes=3 2>&1 | grep -oP 'Granted job allocation \K[0-9]+')
  # The killer is woken at once: the copy of a snapshot is over in a millisecond.
  run as_root nice -n -20 "$devcluster" shell env --chdir="$T" "$BATS_TEST_DIRNAME/kill_saves.py" "$job" "$T/run" "$T/heat2d.log" $kills -N3 -n3 --mpi=pmix \
    --export="ALL,$(slow_io 20)" --checkpoint=3steps --checkpoint-strikes=1000 --checkpoint-dir=run "$heat2d" --log heat2d.log --hurry hurry $options
  echo "$output"
  ((status == 0))
  (($(grep -c '^killed in phase' <<<"$output") >= kills))
  for phase in filling staged drain 'before the rename' 'after the rename'; do
    (($(grep -c "^killed in phase $phase:" <<<"$output") >= 2))
  done
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
}
