#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# suite.sh CHECK_TOPK SUITE [PATH...]: runs a suite on both arms by four ranks, and sees that the head arm took every PATH, as the
# run's line `paths` has them: a suite that no longer reaches a path proves nothing about it.
set -euo pipefail

program=$1 suite=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mpirun --oversubscribe -np 4 "$program" --suite "$suite" --arm both | tee "$log"
taken=$(sed -n 's/^paths      head: //p' "$log")
for path in "$@"; do
  if [[ ", $taken," != *", $path,"* ]]; then
    echo "suite $suite does not reach '$path'; the head arm took: $taken" >&2
    exit 1
  fi
done
