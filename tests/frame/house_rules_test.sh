#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# house_rules_test.sh ROOT: the rules hold in ROOT (where it is a git checkout), and each of them finds its breach in a small made-up tree.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
rules=$1/tests/frame/house_rules.sh

if git -C "$1" rev-parse > /dev/null 2>&1; then
  expect 0 "" "$rules" "$1"
fi

# plant FILE INCLUDE: a tree with one source that has one include.
plant() {
  rm -rf "$scratch/tree"
  mkdir -p "$(dirname "$scratch/tree/$1")"
  git init -q "$scratch/tree"
  printf '// SPDX-License-Identifier: Apache-2.0\n#include %s\n' "$2" > "$scratch/tree/$1"
}
allowed() {
  plant "$@"
  expect 0 "" "$rules" "$scratch/tree"
}
forbidden() {
  plant "$@"
  expect 1 "$1:2: " "$rules" "$scratch/tree"
}

allowed harness/a.cpp '"cases/case.h"'
allowed harness/a.cpp '"dumps/npy.h"'
allowed harness/a.cpp '"oracle/formats.h"'
allowed harness/a.cpp '"kernels/candidate.h"'
forbidden harness/a.cpp '"kernels/layout.h"'
forbidden harness/a.cpp '<hip/hip_runtime.h>'
allowed harness/a.cpp '"exact_topk_commit.h"'
allowed harness/a.cpp '<mpi.h>'

allowed cases/a.h '"oracle/formats.h"'
forbidden cases/a.h '"dumps/npy.h"'
forbidden cases/a.h '"kernels/candidate.h"'
forbidden cases/a.h '"harness/settings.h"'
forbidden cases/a.h '<mpi.h>'

allowed api/a.cpp '"oracle/contract.h"'
allowed api/a.cpp '"dumps/npy.h"'
forbidden api/a.cpp '"harness/capture.h"'
forbidden api/a.cpp '"kernels/candidate.h"'
forbidden api/a.cpp '"cases/case.h"'
forbidden harness/a.cpp '"api/arguments.h"'

for room in oracle dumps kernels; do
  allowed $room/deep/a.cpp "\"$room/a.h\""
  for other in oracle dumps kernels cases harness tests; do
    [[ $other == "$room" ]] || forbidden $room/deep/a.cpp "\"$other/a.h\""
  done
done
forbidden oracle/a.cpp '"formats.h"' # not relative to the root
forbidden oracle/a.cpp '<fstream>'
forbidden oracle/a.cpp '<chrono>'
allowed kernels/hip/hip.h '<hip/hip_runtime.h>'
forbidden kernels/base/a.cpp '<hip/hip_runtime.h>'
forbidden kernels/stages/a.h '<cuda_runtime.h>'
forbidden kernels/a.cpp '<mpi.h>'
allowed tests/oracle/a.cpp '"kernels/layout.h"'
allowed examples/a.cu '<cuda_runtime.h>'
forbidden examples/a.cu '"kernels/candidate.h"'
forbidden examples/a.cpp '"oracle/select.h"'
forbidden attic/a.cpp '"oracle/a.h"' # a room without a rule

plant oracle/a.cpp '<span>'
echo 'int main() {}' > "$scratch/tree/oracle/b.cpp" # the licence is missing in a file that is not the last ...
expect 1 "oracle/b.cpp:1: has no SPDX" "$rules" "$scratch/tree"
rm "$scratch/tree/oracle/a.cpp" # ... and in the last
expect 1 "oracle/b.cpp:1: has no SPDX" "$rules" "$scratch/tree"

done_expecting
