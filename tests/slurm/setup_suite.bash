# One cluster for the whole run. One that is up already is used and left up, so that a single file can be run again and again quickly:
#   devcluster up --prefix P; CAIRN_PREFIX=P bats tests/slurm/FILE.bats
# bats calls these once per run; what they export reaches every test.

setup_suite() {
  export CAIRN_DEVCLUSTER=${CAIRN_DEVCLUSTER:-/tmp/cairn-devcluster-$UID}
  export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-600}
  local devcluster=$BATS_TEST_DIRNAME/../../contrib/devcluster/devcluster
  if [[ ! -x ${CAIRN_PREFIX:-}/bin/cairn ]]; then
    echo "CAIRN_PREFIX must name an install prefix of Cairn with its examples; contrib/test --only slurm makes one" >&2
    return 1
  fi
  if "$devcluster" status | grep -q 'not running'; then touch "$BATS_RUN_TMPDIR/cluster-is-ours"; fi
  "$devcluster" up --prefix "$CAIRN_PREFIX"
}

teardown_suite() {
  if [[ -e $BATS_RUN_TMPDIR/cluster-is-ours ]]; then "$BATS_TEST_DIRNAME/../../contrib/devcluster/devcluster" down; fi
}
