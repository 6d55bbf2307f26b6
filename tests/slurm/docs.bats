# The commands of the documentation are run as they stand there: blocks marked "sh test", one after the other, in one shell of the ordinary
# user. What a reader does by looking (waiting, comparing) stands between them as <!-- test: COMMAND -->.
load helpers

readonly docs=$BATS_TEST_DIRNAME/../../docs

commands_of() {
  awk '/^```sh test$/ { on = 1; next }
       /^```$/ { on = 0 }
       on
       sub(/^<!-- test: /, "") { sub(/ -->$/, ""); print }' "$1"
}

# run_page FILE: with an installed Cairn, as the page assumes. What it waits for in vain ends it, and is the last command that it shows.
run_page() {
  local commands
  commands=$(commands_of "$1")
  [[ -n $commands ]]
  as_user tee commands >/dev/null <<<"set -euxo pipefail"$'\n'"$commands"
  as_user timeout "${CAIRN_TEST_PAGE_BOUND:-600}" env CAIRN="$CAIRN_PREFIX" PKG_CONFIG_PATH="$CAIRN_PREFIX/lib/pkgconfig" XDG_STATE_HOME="$T/state" bash commands
}

@test "the README's program compiles, and its job is protected" {
  run_page "$docs/../README.md"
}

@test "the sample of a batch script is saved when it is preempted, and resumes" {
  as_user cp "$docs/../contrib/examples/serial/counter.sbatch" .
  job=$(as_user env COUNTER="$examples/counter" sbatch --parsable --output=counter.out counter.sbatch)
  wait_for 60 grep -q '^counter: from 1$' "$T/counter.out"
  as_user scancel "$(preempt_job "$job" 4)"
  lift_hold "$job"
  wait_for 60 grep -qP '^counter: from (?!1$)\d+$' "$T/counter.out"
}

@test "the tutorial's commands do what it says, from the first compilation to the damaged checkpoint" {
  run_page "$docs/tutorial.md"
}
