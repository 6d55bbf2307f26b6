# The cluster itself and the example program, without Cairn; and what `cairn doctor` says about it.
load helpers

@test "a job of the ordinary user runs on all four nodes" {
  run -0 --separate-stderr as_user srun --nodes=4 bash -c 'echo "$SLURMD_NODENAME $(id -un)"'
  [[ $(sort <<<"$output") == "n1 $cluster_user"$'\n'"n2 $cluster_user"$'\n'"n3 $cluster_user"$'\n'"n4 $cluster_user" ]]
}

@test "cairn doctor finds no problem on a compute node, and none on all of them" {
  run -0 as_user srun --nodelist=n2 "$CAIRN_PREFIX/bin/cairn" doctor "$T"
  [[ $output == *"OK       plugin "* && $output == *"0 problems"* ]]
  wait_for 60 cluster_is_idle
  run -0 as_user "$CAIRN_PREFIX/bin/cairn" doctor --site --partition=low "$T"
  [[ $output == "OK       nodes             examined: n1,n2,n3,n4"* ]]
  [[ $output == *"OK       plugin_line       optional $CAIRN_PREFIX/"*", everywhere"* && $output == *"0 problems"* ]]
  run -1 as_user "$CAIRN_PREFIX/bin/cairn" doctor --site --partition=nowhere "$T"
  [[ $output == *"problem  nodes             partition nowhere has none"* ]]
}

@test "a daemon of the cluster keeps no descriptor of whoever started it" {
  local pid
  pid=$(cat "$CAIRN_DEVCLUSTER/run/munged.pid")
  as_root kill "$pid"
  wait_for 60 test ! -e "/proc/$pid"
  "$devcluster" up 9>"$BATS_TEST_TMPDIR/callers"
  run -0 as_root ls -l "/proc/$(cat "$CAIRN_DEVCLUSTER/run/munged.pid")/fd"
  [[ $output == *munged.log* && $output != *"$BATS_TEST_TMPDIR"* ]]
}

@test "heat2d gives one hash on any number of ranks, and another after one step more" {
  local reference placement
  reference=$(undisturbed_hash --nx 101 --ny 67 --steps 50)
  [[ $reference =~ ^[0-9a-f]{16}$ ]]
  for placement in '-N2 -n2' '-N4 -n4' '-N3 -n7'; do
    run -0 as_user srun --mpi=pmix $placement "$heat2d" --nx 101 --ny 67 --steps 50
    [[ ${lines[-1]} == *", hash $reference" ]]
  done
  [[ $(undisturbed_hash --nx 101 --ny 67 --steps 51) != "$reference" ]]
}

@test "without Cairn a preempted job fails in its grace time and is lost" {
  local job
  job=$(submit_heat2d --nodes=2-4 -- --steps 100000 --step-ms 20)
  wait_for 60 heat2d_is_past 1
  [[ $(heat2d_start 0 nodes) == 'n[1-4]' ]]
  preempt_job "$job" 2
  job_is "$job" FAILED
  [[ $(job_field "$job" Restarts) == 0 ]]
}

@test "a requeued job starts again on fewer nodes as soon as its owner lifts the hold" {
  local job
  job=$(submit_heat2d --nodes=2-4 -- --steps 100000 --step-ms 20)
  wait_for 60 heat2d_is_past 1
  as_user scontrol requeue "$job"
  preempt_job "$job" 2
  lift_hold "$job"
  wait_for 60 heat2d_start 1 step
  [[ $(heat2d_start 1 step) == 0 && $(heat2d_start 1 ranks) == 2 ]]
}
