# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the shell tests: expect() counts failures, done_expecting ends the test. $scratch is a folder that is removed.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
expectations=0
failures=0

# expect STATUS TEXT COMMAND...: the command leaves with STATUS and its output (both streams) contains TEXT.
expect() {
  local wanted=$1 text=$2 status=0 output
  shift 2
  output=$("$@" 2>&1 < /dev/null) || status=$?
  expectations=$((expectations + 1))
  if [[ $status != "$wanted" || $output != *"$text"* ]]; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n  status %s, expected %s; expected in its output: %s\n%s\n' "$*" "$status" "$wanted" "$text" "$output" >&2
  fi
}

done_expecting() {
  echo "$((expectations - failures)) of $expectations expectations held"
  [[ $failures == 0 ]]
}
