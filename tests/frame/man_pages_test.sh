#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# man_pages_test.sh ROOT PAGES PROGRAM...: each program's page has the options of its --help and no others, exact_topk.3 names
# everything that the header declares, and none of them troubles groff.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
root=$1 pages=$2
shift 2

in_help() {
  "$1" --help | grep -oE '^ *(-[a-zA-Z],)?--[a-z][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u
}
in_page() { # in a tag of the page's options
  awk '/^\.SH/ { on = $2 == "OPTIONS" } on && /^\.B / { print $2 }' "$1" | sed 's/\\-/-/g' | grep -oE -- '--[a-z0-9-]+' | sort -u
}
for program in "$@"; do
  page=$pages/$(basename "$program").1
  in_help "$program" > "$scratch/help"
  in_page "$page" > "$scratch/page"
  expect 0 "--" cat "$scratch/page"
  expect 0 "" diff "$scratch/help" "$scratch/page"
done
# Values and descriptions, one on the option's own line and one below it.
check=$pages/check_topk.1
expect 0 'partial sums, and ranks that must agree' grep -A1 -Fx '.B \-\-tp \fIT\fR' "$check"
expect 0 'glm53, glm51 or dsv32; a name' grep -A1 -F '.B \-\-geometry \fINAME|FILE.json\fR' "$check"
expect 0 '.SS Candidate' grep -Fx '.SS Candidate' "$check"

header=$root/api/include/exact_topk/exact_topk.h
sed -e 's:/\*.*\*/::' -e '\:/\*:,\:\*/:d' "$header" > "$scratch/code"
sed 's/\\-/-/g' "$pages/exact_topk.3" > "$scratch/library"
missing() { # names that the header declares and the page does not say
  {
    grep -oE '\b(exact_topk|EXACT_TOPK)_[A-Za-z0-9_]+' "$scratch/code" | grep -vE '_(H|EXPORT)$'
    awk '/^typedef struct/ { on = 1; next } /^}/ { on = 0 } on' "$scratch/code" | grep -oE '[a-z_0-9]+;' | tr -d ';'
  } | sort -u | while read -r name; do grep -qwF -- "$name" "$scratch/library" || echo "$name"; done
}
expect 0 "" test "$(grep -c ';' "$scratch/code")" -gt 50
expect 0 "" test -z "$(missing)"

for page in "$pages"/*.[13]; do
  warnings=$(groff -man -ww -Tascii -z "$page" 2>&1) || true
  expect 0 "" test -z "$warnings"
done

done_expecting
