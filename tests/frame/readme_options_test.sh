#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme_options_test.sh ROOT PROGRAM...: the options that a program's --help names and those that the tables of the
# README name for it are the same.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
readme=$1/README.md
shift

in_help() { # one an option's line; a description that mentions another option does not count
  "$1" --help | grep -oE '^ *(-[a-zA-Z],)?--[a-z][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u
}
in_readme() { # the first column of the tables between markers with its name
  awk -v name="$(basename "$1")" '
    /^<!-- options: / { for (i = 3; i < NF; ++i) if ($i == name) on = 1 }
    $0 == "<!-- /options -->" { on = 0 }
    on' "$readme" |
    grep -oE '^\| `--[a-z][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u
}

for program in "$@"; do
  in_help "$program" > "$scratch/help"
  in_readme "$program" > "$scratch/readme"
  expect 0 "" test -s "$scratch/help"
  expect 0 "" diff "$scratch/help" "$scratch/readme"
done
done_expecting
