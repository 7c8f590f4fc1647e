#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make_page.sh TEMPLATE VERSION PAGE [PROGRAM]: PAGE is TEMPLATE with @VERSION@, and with the options of PROGRAM's --help for the
# line @OPTIONS@.
set -euo pipefail
options=
if [[ $# == 4 ]]; then
  options=$("$4" --help | awk -f "$(dirname "$0")/options_of.awk")
  [[ -n $options ]]
fi
while IFS= read -r line; do
  case $line in
    @OPTIONS@) printf '%s\n' "$options" ;;
    *) printf '%s\n' "${line//@VERSION@/$2}" ;;
  esac
done < "$1" > "$3.new"
mv "$3.new" "$3"
