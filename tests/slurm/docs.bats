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

@test "the tutorial's commands do what it says, from the first compilation to the damaged checkpoint" {
  local tutorial
  tutorial=$(commands_of "$docs/tutorial.md")
  (($(wc -l <<<"$tutorial") > 20))
  as_user tee tutorial >/dev/null <<<"set -euxo pipefail"$'\n'"$tutorial"
  as_user env CAIRN="$CAIRN_PREFIX" PKG_CONFIG_PATH="$CAIRN_PREFIX/lib/pkgconfig" XDG_STATE_HOME="$T/state" bash tutorial
}
