#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh ROOT LIBRARY: the library exports what its header declares and nothing else, each symbol in a version, and has
# its soname.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"

library=$2
header=$1/api/include/exact_topk/exact_topk.h
grep -A2 '^EXACT_TOPK_EXPORT' "$header" | grep -oE 'exact_topk_[a-z0-9_]+\(' | sed 's/($/@@EXACT_TOPK_0.1/' | sort > "$scratch/declared"
nm -D --defined-only "$2" | awk '$2 == "T" { print $3 }' | sort > "$scratch/exported"
expect 0 "exact_topk_check_list@@EXACT_TOPK_0.1" cat "$scratch/declared"
expect 0 "" diff "$scratch/declared" "$scratch/exported"

others() { nm -D --defined-only "$library" | awk '$2 != "T" && $3 !~ /^EXACT_TOPK_/'; }
expect 0 "" test -z "$(others)"
expect 0 "soname: [libexact_topk.so.0]" readelf -d "$2"

done_expecting
