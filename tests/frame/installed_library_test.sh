#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# installed_library_test.sh ROOT BUILD LIBDIR PYTHON: libexact_topk of an installed tree that was moved: the README's C program
# builds against it from another folder through pkg-config and through find_package, its Python module finds the library
# beside it, and all say what the README prints.
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
# shellcheck source=tests/frame/readme_block.sh
source "$1/tests/frame/readme_block.sh"
readme=$1/README.md examples=$1/examples libdir=$3 python=$4

cmake --install "$2" --prefix "$scratch/before" > /dev/null
mv "$scratch/before" "$scratch/prefix"
prefix=$scratch/prefix

block() { readme_block "$readme" "$1"; }
unlicensed() { sed -e '1,/\*\/$/ { /^\/\*/,/\*\/$/d; }' -e '/^# SPDX/d' -e '/^"""/d' "$1"; }
as_in_readme() { diff <(block "file: $1") <(unlicensed "$2"); }
expect 0 "" as_in_readme check_row.c "$examples/check_row.c"
expect 0 "" as_in_readme check_row.py "$examples/python/check_row.py"
said=$(block "output: check_row")
expect 0 "" test -n "$said"

mkdir "$scratch/work"
cd "$scratch/work"
cp "$prefix/share/exact_topk/examples/check_row.c" .

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig LD_LIBRARY_PATH=$prefix/$libdir
with_pkg_config() {
  local -a flags
  read -ra flags <<< "$(pkg-config --cflags --libs libexact_topk)"
  cc -std=c11 -pedantic -Wall -Wextra -Werror check_row.c "${flags[@]}" -o check_row
}
expect 0 "" with_pkg_config
expect 0 "$said" ./check_row
unset LD_LIBRARY_PATH

cat > CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.25)
project(check_row LANGUAGES C CXX)
find_package(exact_topk REQUIRED COMPONENTS library)
add_executable(check_row check_row.c)
target_link_libraries(check_row PRIVATE exact_topk::exact_topk)
file(WRITE ${CMAKE_BINARY_DIR}/check_row.cpp "#include <exact_topk/exact_topk.hpp>
int main() { return exact_topk::check_list(std::vector<float>{1, 2}, std::vector<int>{1}, 1) ? 0 : 1; }\n")
add_executable(check_row_cpp ${CMAKE_BINARY_DIR}/check_row.cpp)
target_link_libraries(check_row_cpp PRIVATE exact_topk::exact_topk)
target_compile_features(check_row_cpp PRIVATE cxx_std_17)
END
with_cmake() {
  cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" && cmake --build build
}
expect 0 "" with_cmake
expect 0 "exact_topk_DIR:PATH=$prefix/" grep exact_topk_DIR build/CMakeCache.txt # it is this tree that was found
expect 0 "$said" build/check_row
expect 0 "" build/check_row_cpp
without_library() { # a tree whose library was taken away says so
  mv "$prefix/$libdir/cmake" "$prefix/$libdir/cmake.away"
  cmake -S . -B build2 -DCMAKE_PREFIX_PATH="$prefix"
}
expect 1 "exact_topk" without_library

export PYTHONPATH=$prefix/$libdir/exact_topk/python PYTHONDONTWRITEBYTECODE=1
unset EXACT_TOPK_LIBRARY
expect 0 "$(block "output: check_row.py")" "$python" "$prefix/share/exact_topk/examples/python/check_row.py"
expect 0 "$(block "output: serving_hook.py")" "$python" "$prefix/share/exact_topk/examples/python/serving_hook.py"
elsewhere() { # one file, copied beside the library
  cp "$prefix/$libdir/exact_topk/python/exact_topk.py" "$prefix/$libdir/libexact_topk.so.0" "$scratch/work"
  PYTHONPATH='' "$python" -c 'import exact_topk; print(exact_topk.__file__)'
}
expect 0 "$scratch/work/exact_topk.py" elsewhere
expect 0 "15 passed" "$python" -m pytest -q -p no:cacheprovider "$prefix/share/exact_topk/examples/python/test_my_topk.py"

for page in man1/check_topk.1 man1/time_topk.1 man1/compare_dumps.1 man3/exact_topk.3; do
  expect 0 "" test -s "$prefix/share/man/$page"
done
for program in check_topk time_topk compare_dumps; do
  expect 0 "" test -s "$prefix/share/bash-completion/completions/$program"
done

done_expecting
