#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# installed_test.sh ROOT BUILD: an installed tree works alone: its programs find the candidates beside them, and the plug-in
# of the README builds against the header, through pkg-config and through find_package, and passes.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
# shellcheck source=tests/frame/readme_block.sh
source "$1/tests/frame/readme_block.sh"

# The tree is moved after the installation: nothing in it may name where it was.
cmake --install "$2" --prefix "$scratch/before" > /dev/null
mv "$scratch/before" "$scratch/prefix"
prefix=$scratch/prefix
check_topk=$prefix/bin/check_topk

mkdir "$scratch/plugin"
cd "$scratch/plugin"
for file in my_topk.c CMakeLists.txt; do
  readme_block "$1/README.md" "$file" > "$scratch/plugin/$file"
done

with_pkg_config() {
  export PKG_CONFIG_PATH=$prefix/share/pkgconfig
  local -a flags
  read -ra flags <<< "$(pkg-config --cflags exact_topk)"
  cc -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC "${flags[@]}" my_topk.c -o my_topk.so
}
with_cmake() {
  cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build build
}
expect 0 "" with_pkg_config
expect 0 "" with_cmake
expect 0 "exact_topk_DIR:PATH=$prefix/" grep exact_topk_DIR build/CMakeCache.txt # it is this tree that was found

expect 0 "" "$check_topk" --pos 100 --rows 1 --cache random --rowset serving --launches 1 --steps 1
expect 0 "kind=index" "$check_topk" --suite "$prefix/share/exact_topk/cases/quick.suite" --list
expect 0 "" "$prefix/bin/compare_dumps" --help
for plugin in my_topk.so build/my_topk.so; do
  expect 0 "" "$check_topk" --candidate "./$plugin" --stage select --rows 4 --rows-from rising
done

done_expecting
