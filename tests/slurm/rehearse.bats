# cairn rehearse with ranks that srun starts, and srun --checkpoint-rehearse: toys without MPI, which drift apart, and heat2d.
load helpers

@test "rehearse: four ranks that are resumed on two compute what they would have, and a number that is not registered is found" {
  run -0 as_user salloc --quiet --nodes=4 cairn rehearse --ranks=2 -- srun --ntasks=4 "$toy" --steps 1000 --step-us 500
  [[ $output == *'saved at step 20 by 4 ranks, resumed by 2 ranks, compared at step 25'*'2 of 2 arrays equal'* ]]
  run -1 as_user salloc --quiet --nodes=4 cairn rehearse -- srun --ntasks=4 "$toy" --forgetful --step-us 500
  [[ $output == *'resumed by 4 ranks'*$'\nu '*' differs '*'1 of 2 arrays equal'* ]]
  run -0 as_user salloc --quiet --nodes=2 cairn rehearse --ranks=1 -- srun --ntasks=2 --mpi=pmix "$heat2d" --nx 96 --ny 64 --steps 100
  [[ $output == *'saved at step 20 by 2 ranks, resumed by 1 rank, compared at step 25'* ]]
}

@test "rehearse: srun with the option makes a rehearsal of its step, and leaves the run itself alone" {
  run -0 as_user salloc --quiet --nodes=4 srun --ntasks=4 --checkpoint=10m --checkpoint-dir="$T/run" --checkpoint-rehearse=ranks=2 \
    "$toy" --steps 1000 --step-us 500
  [[ $output == *"cairn: a rehearsal in place of the step: cairn rehearse --ranks=2 -- srun --ntasks=4 --checkpoint=10m "* ]]
  [[ $output == *'saved at step 20 by 4 ranks, resumed by 2 ranks, compared at step 25'*'2 of 2 arrays equal'* ]]
  [[ $(echo "$T"/*) == "$T/*" ]]
  run -1 as_user salloc --quiet --nodes=4 srun --ntasks=4 --checkpoint-rehearse=save-at=3,until=8 "$toy" --forgetful --step-us 500
  [[ $output == *'saved at step 3 by 4 ranks, resumed by 4 ranks, compared at step 8'*$'\nu '*' differs '*'1 of 2 arrays equal'* ]]
  run -3 as_user srun --ntasks=2 --checkpoint-rehearse "$toy" --steps 10 --step-us 500
  [[ $output == *'left no checkpoint of step 20'* ]]
}

@test "rehearse: an option of the job, and a variable, make rehearsals of the sruns in its script" {
  as_user tee script >/dev/null <<SCRIPT
#!/bin/bash
srun --ntasks=2 bash -c 'echo local is \$CAIRN_LOCAL; exec $toy \$FORGETFUL --step-us 500'
SCRIPT
  run -0 as_user sbatch --wait --nodes=2 --checkpoint-rehearse=ranks=1 --checkpoint-local=none --output=job.out script
  [[ $(<"$T/job.out") == *'local is none'*'saved at step 20 by 2 ranks, resumed by 1 rank, compared at step 25'*'2 of 2 arrays equal'* ]]
  run -1 as_user env CAIRN_REHEARSE=until=30 FORGETFUL=--forgetful sbatch --wait --nodes=2 --output=other.out script
  [[ $(<"$T/other.out") == *'saved at step 20 by 2 ranks, resumed by 2 ranks, compared at step 30'*'1 of 2 arrays equal'* ]]
  for option in --checkpoint-rehearse=2 --checkpoint-rehearse=ranks=0; do
    run as_user sbatch $option script
    ((status != 0))
    [[ $output == *"$option is not accepted. Accepted: on, off, or ranks=N, save-at=STEP, "* ]]
  done
  run -1 as_user env CAIRN_REHEARSE=2 sbatch script
  [[ $output == *'CAIRN_REHEARSE=2 is not accepted.'* ]]
}

@test "rehearse: an srun that has become one heeds the signals that srun blocks for its threads" {
  local job
  job=$(submit killed --nodes=1 <<<$'#!/bin/bash
srun --checkpoint-rehearse bash -c "touch begun; exec sleep 600" & rehearsal=$!
until [[ -e begun ]]; do sleep 0.1; done
kill $rehearsal
wait $rehearsal
echo "ended with $?"')
  wait_for 60 grep -qx 'ended with 143' "$T/killed.out"
  wait_for 60 job_has_ended "$job"
}
