#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dev_test.sh ROOT: what ./dev says and returns, with the commands that it calls replaced by functions, and with the real
# mpirun where its status matters.
# shellcheck disable=SC2317 # functions that stand in for commands
set -euo pipefail
# shellcheck source=tests/frame/expect.sh
source "$1/tests/frame/expect.sh"
# shellcheck source=dev
source "$1/dev"

# Usage and bad arguments.
expect 2 "usage: ./dev VERB" "$1/dev"
expect 0 "usage: ./dev VERB" "$1/dev" --help
expect 2 "there is no verb 'biuld'" "$1/dev" biuld
expect 2 "there is no preset 'fast'" "$1/dev" build fast
expect 2 "build takes one preset" "$1/dev" build release asan
expect 2 "lint takes --quick or --all, not '--al'" "$1/dev" lint --al
expect 2 "setup takes no arguments" "$1/dev" setup now
expect 2 "NP is '0'" env NP=0 "$1/dev" check
expect 2 "NP is 'four'" env NP=four "$1/dev" check

# Statuses of a real mpirun: check_topk's own pass, a killed rank or any other status becomes 2.
for status in 0 1 2 77; do
  expect $status "" under_mpirun 2 bash -c "exit $status"
done
expect 2 "" under_mpirun 2 bash -c 'exit 3'
# shellcheck disable=SC2016 # for the rank's shell
expect 2 "" under_mpirun 4 bash -c '[[ $OMPI_COMM_WORLD_RANK != 2 ]] || kill -KILL $$; sleep 0.2'
# shellcheck disable=SC2016
expect 2 "" under_mpirun 2 bash -c 'kill -ABRT $$'
expect 2 "" under_mpirun 2 "$scratch/not-there"

# --allow-run-as-root and --oversubscribe only where they are needed.
simulated() { # simulated ROOT SLOTS: an mpirun that starts at most SLOTS ranks and prints how it was called
  is_root() { [[ $as == root ]]; }
  mpirun() {
    [[ $2 -le $slots || $* == *--oversubscribe* ]] || return 1
    [[ ${*: -1} == true ]] || echo "mpirun $*"
  }
  local as=$1 slots=$2
  shift 2
  under_mpirun "$@"
}
expect 0 "mpirun -np 4 program --list" simulated user 4 4 program --list
expect 0 "mpirun -np 4 --allow-run-as-root program" simulated root 4 4 program
expect 0 "mpirun -np 4 --oversubscribe program" simulated user 2 4 program
expect 0 "mpirun -np 8 --allow-run-as-root --oversubscribe program" simulated root 2 8 program
no_mpirun() {
  mpirun() { return 1; }
  under_mpirun 4 program
}
expect 2 "mpirun cannot start 4 ranks here" no_mpirun

# Packages: nothing is called when all are there; what is missing is installed, by sudo for a user.
packages() { # packages root|user PACKAGE...: prints what was called; only "here" is installed
  is_root() { [[ $as == root ]]; }
  dpkg-query() { # of what was asked for, "removed" left its settings behind, "gone" is unknown
    printf '%s\n' 'installed here' 'config-files removed'
    return 1
  }
  sudo() { echo "sudo $*" >> "$scratch/called"; }
  env() { echo "env $*" >> "$scratch/called"; }
  local as=$1
  shift
  : > "$scratch/called"
  need "$@"
  cat "$scratch/called"
}
quiet() { [[ -z $("$@" 2>&1) ]]; }
expect 0 "" quiet packages root here
expect 0 "" quiet packages user here
expect 0 "env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends gone" packages root here gone
expect 0 "apt-get -qq update" packages root gone
expect 0 "--no-install-recommends gone removed" packages root gone here removed
expect 0 "sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends gone" packages user gone here
expect 0 "dev: installing gone" packages user gone
no_sudo() {
  command() { [[ $2 == dpkg-query ]]; }
  packages user gone
}
expect 2 "there is no sudo; install them as root: apt-get install gone" no_sudo
no_network() {
  run_quietly() { return 100; }
  packages root gone
}
expect 2 "apt-get update failed" no_network

# Labels: long tests are left out unless labels are asked for; a failed test is 1, a failed build is 2.
tested() { # tested CTEST_STATUS ARGUMENTS...
  build() { echo "build $*"; }
  ctest() {
    echo "ctest $*"
    return "$result"
  }
  local result=$1
  shift
  run_tests "$@"
}
expect 0 "build release" tested 0
expect 0 "-LE exactness|nightly" tested 0
expect 0 "build asan" tested 0 asan -R oracle
expect 0 "-LE exactness|nightly -R oracle" tested 0 asan -R oracle
labelled() { [[ $(tested 0 "$@") != *"exactness|nightly"* ]]; }
expect 0 "" labelled -L nightly
expect 0 "" labelled release -LE program
expect 0 "" labelled --label-regex exactness
expect 1 "" tested 8
unbuildable() {
  configure() { :; }
  cmake() { return 1; }
  build release
}
expect 2 "preset release does not build" unbuildable

# Quiet on success, complete on failure.
expect 0 "" quiet run_quietly echo noise
expect 1 "noise" run_quietly bash -c 'echo noise; exit 1'

done_expecting
