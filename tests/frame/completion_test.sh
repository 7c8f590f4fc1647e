#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# completion_test.sh ROOT BIN: what bash completes for the programs in BIN.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
# shellcheck source=completions/exact_topk.bash
source "$1/completions/exact_topk.bash"
bin=$2

# completed LINE [BREAKS]: the words that bash would offer at the end of LINE, one a line.
completed() {
  local COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=() program=${1%% *}
  COMP_WORDBREAKS=${2-$' \t\n"\'><=;|&(:'}
  _exact_topk "$program"
  printf '%s\n' "${COMPREPLY[@]}"
}
lines() { [[ $(completed "${@:2}") == "$1" ]] || { completed "${@:2}"; return 1; }; }
check=$bin/check_topk

expect 0 "" lines $'--rows\n--rowset\n--rows-from' "$check --rows"
expect 0 "" lines --capture "$check --pos 3 --cap"
expect 0 "--allow-mistrusted" completed "$check "
expect 0 "" lines --json "$bin/compare_dumps --js"
expect 0 "" lines "" "$bin/compare_dumps --json rep" # a file's name is bash's to complete
expect 0 "" lines "" "$check --dump d"

expect 0 "" lines $'launch\nscore\nselect' "$check --stage "
expect 0 "" lines select "$check --stage se"
expect 0 "" lines $'e4m3fn\ne4m3fnuz' "$check --fp8 "
expect 0 "" lines on,off "$check --hadamard on,of"
expect 0 "" lines last "$check --nan "
expect 0 "" lines $'ties' "$check --cache t"
expect 0 "" lines $'random,ties' "$check --cache random,t"
expect 0 "base" completed "$check --contract "
expect 0 "glm51" completed "$check --geometry g"

# Cases: bash breaks words at "=", and only what is behind the last is offered.
name=kind=index/tp=1/rows=2/cache=ties/rowset=chain/pos=8447
expect 0 "" lines "$name" "$check --rows 2 --cache ties --rowset chain --filter kind=in" $' \t\n'
expect 0 "" lines "index/tp=1/rows=2/cache=ties/rowset=chain/pos=8447" "$check --rows 2 --cache ties --rowset chain --filter kind=in"
expect 0 "" lines "8447" "$check --rows 2 --cache ties --rowset chain --filter ${name%8447}"
expect 0 "rows=4/pos=9000/stage=select" completed "$check --stage select --rows 4 --pos 9000 --start-at " $' \t\n'

registered() { complete -p "$1"; }
for program in check_topk time_topk compare_dumps; do
  expect 0 "_exact_topk" registered $program
done

done_expecting
