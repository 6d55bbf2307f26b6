# cairn rehearse with ranks that srun starts: toys without MPI, which drift apart, and heat2d.
load helpers

@test "rehearse: four ranks that are resumed on two compute what they would have, and a number that is not registered is found" {
  run -0 as_user salloc --quiet --nodes=4 cairn rehearse --ranks=2 -- srun --ntasks=4 "$toy" --steps 1000 --step-us 500
  [[ $output == *'saved at step 20 by 4 ranks, resumed by 2 ranks, compared at step 25'*'2 of 2 arrays equal'* ]]
  run -1 as_user salloc --quiet --nodes=4 cairn rehearse -- srun --ntasks=4 "$toy" --forgetful --step-us 500
  [[ $output == *'resumed by 4 ranks'*$'\nu '*' differs '*'1 of 2 arrays equal'* ]]
  run -0 as_user salloc --quiet --nodes=2 cairn rehearse --ranks=1 -- srun --ntasks=2 --mpi=pmix "$heat2d" --nx 96 --ny 64 --steps 100
  [[ $output == *'saved at step 20 by 2 ranks, resumed by 1 rank, compared at step 25'* ]]
}
