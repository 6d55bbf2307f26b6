# A job whose run lies in a bucket: what directories promise holds there, too. The server is a real one (tests/support/s3_server).
load helpers

readonly server=$BATS_TEST_DIRNAME/../support/s3_server

setup_file() {
  local status=0 said
  export s3_variables=''
  said=$("$server" start "$BATS_FILE_TMPDIR/s3") || status=$?
  ((status != 3)) || return 0
  ((status == 0))
  s3_variables=$(tr '\n' ' ' <<<"$said")
  env $s3_variables bash -ec 'curl --silent --show-error --fail --aws-sigv4 aws:amz:us-east-1:s3 \
    --header x-amz-content-sha256:UNSIGNED-PAYLOAD \
    --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" --request PUT "$CAIRN_S3_ENDPOINT/cairn-runs"'
}

teardown_file() { [[ -z $s3_variables ]] || "$server" stop "$BATS_FILE_TMPDIR/s3"; }

@test "a job preempted on four nodes resumes from its bucket on two and ends with the same hash" {
  local job dir options='--nx 96 --ny 64 --steps 500'
  [[ -n $s3_variables ]] || skip 'this machine has no server of S3 (contrib/install-deps installs one)'
  job=$(submit heat2d --nodes=2-4 --checkpoint --checkpoint-dir=s3://cairn-runs/%x-%j <<SCRIPT
#!/bin/bash
export $s3_variables
srun --mpi=pmix $heat2d --log heat2d.log --step-ms 100 --hurry hurry $options
SCRIPT
  )
  dir=s3://cairn-runs/heat2d-$job
  wait_for 60 heat2d_is_past 4
  preempt_job "$job" 2
  hurry
  lift_hold "$job"
  wait_for 60 job_has_ended "$job"
  job_is "$job" COMPLETED
  [[ $(job_field "$job" Restarts) == 1 ]]
  [[ $(heat2d_start 0 ranks) == 4 && $(heat2d_start 1 ranks) == 2 ]]
  (($(heat2d_start 1 step) >= 4))
  [[ $(heat2d_hash) == "$(undisturbed_hash $options)" ]]
  as_user env $s3_variables cairn verify "$dir"
  as_user env $s3_variables cairn why "$dir" | grep -q 'preempted'
}
