#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# installed_test.sh ROOT BUILD: an installed tree works alone, in another folder than it was installed to: its programs find the
# candidates beside them, the examples build against its header, through pkg-config and through find_package, and the commands of
# the README's chapter on one's own kernel give what it prints.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
# shellcheck source=tests/frame/readme_block.sh
source "$1/tests/frame/readme_block.sh"
readme=$1/README.md

# The tree is moved after the installation: nothing in it may name where it was.
cmake --install "$2" --prefix "$scratch/before" > /dev/null
mv "$scratch/before" "$scratch/prefix"
prefix=$scratch/prefix
check_topk=$prefix/bin/check_topk
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/share/pkgconfig

expect 0 "" "$check_topk" --pos 100 --rows 1 --cache random --rowset serving --launches 1 --steps 1
expect 0 "kind=index" "$check_topk" --suite "$prefix/share/exact_topk/cases/quick.suite" --list
expect 0 "" "$prefix/bin/compare_dumps" --help

# The README's commands one after another, in one folder.
timeless() { sed -E 's/ seconds=[0-9.]+//; s/; [0-9.]+ s$//'; }
as_printed() { # as_printed NAME: every line of the output block, but "...", stands in the output of the command block, in order
  local line
  while IFS= read -r line; do
    while IFS= read -r said <&3; do
      [[ $said != "$line" ]] || continue 2
    done
    echo "the output of '$1' lacks: $line" >&2
    return 1
  done < <(readme_block "$readme" "output: $1" | grep -vx '\.\.\.' | timeless) 3< <(timeless < "$scratch/$1.out")
}
mkdir "$scratch/work"
cd "$scratch/work"
for block in start wrong replay; do
  eval "$(readme_block "$readme" "commands: $block")" > "$scratch/$block.out" || true
  expect 0 "" test -s "$scratch/$block.out"
  expect 0 "" as_printed "$block"
done

# The wrong one is convicted at the sizes where its buffer overflows, with that diagnosis, and acquitted below.
expect 0 "" check_topk --candidate ./fp16_bin.so --stage select --rows-from coarse-bin-2048,coarse-bin-2049,coarse-bin-3708,coarse-bin-3709,coarse-bin-4096
for members in 4097 16384 16385; do
  expect 1 "as a buffer of 4096 entries would leave it" check_topk --candidate ./fp16_bin.so --stage select --rows 4 --rows-from "coarse-bin-$members"
done

# What --shrink left has one member more than the buffer, and is judged without the library.
expect 1 "1 rows of up to 4097 keys, k 1, no query" check_topk --capture small.safetensors

with_cmake() {
  cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build build
}
expect 0 "" with_cmake
expect 0 "exact_topk_DIR:PATH=$prefix/" grep exact_topk_DIR build/CMakeCache.txt # it is this tree that was found
expect 0 "" check_topk --candidate ./build/partial_sort.so --stage select --rows 4 --rows-from rising
expect 1 "dropped buffer" check_topk --candidate ./build/fp16_bin.so --stage select --rows 4 --rows-from coarse-bin-4097

nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc || true)
with_nvcc() {
  local -a flags
  read -ra flags <<< "$(pkg-config --cflags exact_topk)"
  "$nvcc" -std=c++17 -O2 -gencode arch=compute_90a,code=sm_90a -cudart static -shared -Xcompiler -fPIC "${flags[@]}" cub_topk.cu -o cub_topk.so
}
if [[ -n $nvcc ]]; then
  expect 0 "" with_nvcc
  expect 0 "xtk_replay" nm -D --defined-only cub_topk.so
fi

done_expecting
