#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# house_rules.sh ROOT: prints one line a breach of the rules that no compiler knows, and leaves with 1 if there is any.
#   - every source, script and CMake file names its licence in its first three lines;
#   - quoted includes are relative to ROOT, and a room includes only the rooms that it may (DESIGN, "The house");
#   - only kernels/hip and examples include a vendor's headers, only harness includes MPI's;
#   - oracle is pure: no files, clocks, threads or streams.
# Looks at the files that git knows, new ones included.
set -euo pipefail
cd "${1:?usage: house_rules.sh ROOT}"

mapfile -t files < <(git ls-files --cached --others --exclude-standard --deduplicate -- '*.h' '*.hpp' '*.c' '*.cpp' '*.sh' \
  '*.bash' '*.awk' '*.py' '*.cu' '*.cmake' '*CMakeLists.txt' dev .ci/run | while read -r file; do [[ ! -f $file ]] || echo "$file"; done)
[[ ${#files[@]} != 0 ]] || {
  echo "house_rules: there is no source in $1" >&2
  exit 2
}

awk '
BEGIN {
  # Who may include whom. A room that is not here has no rule yet: decide one.
  may["oracle"] = "oracle/"
  may["dumps"] = "dumps/"
  may["kernels"] = "kernels/"
  may["cases"] = "cases/ oracle/"
  may["api"] = "api/ oracle/ dumps/"
  may["examples"] = "" # nothing of the house: they are built from an installed tree
  may["harness"] = "harness/ cases/ dumps/ oracle/ kernels/candidate.h exact_topk_commit.h" # the last is made by the build
  may["tests"] = may["bench"] = "oracle/ dumps/ kernels/ cases/ harness/ tests/ bench/"
  impure = " fstream iostream filesystem chrono ctime time.h thread mutex cstdio stdio.h unistd.h fcntl.h "
}
function breach(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; breaches = 1 }
FNR == 1 {
  if (file != "" && !licensed) { printf "%s:1: has no SPDX-License-Identifier line\n", file; breaches = 1 }
  file = FILENAME; licensed = 0
  room = file; sub(/\/.*/, "", room)
}
FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { licensed = 1 }
file ~ /\.(h|hpp|c|cpp|cu)$/ && /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  header = $0; sub(/^[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)
  if ($0 ~ /^[^<"]*"/) {
    if (!(room in may)) breach("tests/frame/house_rules.sh has no rule for what " room "/ may include")
    else {
      allowed = 0; count = split(may[room], prefixes, " ")
      for (i = 1; i <= count; ++i) if (index(header, prefixes[i]) == 1) allowed = 1
      if (!allowed) breach(room "/ may not include \"" header "\"; it may include " may[room])
    }
  } else {
    if (header ~ /^(hip|cuda|rocm)[\/_.]/ && file !~ /^kernels\/hip\// && room != "examples") breach("only kernels/hip may include <" header ">")
    if (header ~ /^mpi(-ext)?\.h$/ && room != "harness" && room != "tests") breach("only harness may include <" header ">")
    if (room == "oracle" && index(impure, " " header " ")) breach("oracle is pure and may not include <" header ">")
  }
}
END {
  if (!licensed) { printf "%s:1: has no SPDX-License-Identifier line\n", file; breaches = 1 }
  exit breaches
}' "${files[@]}"
