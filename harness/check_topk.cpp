// SPDX-License-Identifier: Apache-2.0
//
// check_topk: judges a sparse-attention indexer entry by entry (SPEC sections 6
// and 7). Everything is in the library.
#include "harness/program.h"

int main(int argc, char** argv) {
  using namespace exact_topk::harness;
  run_program(argc, argv, Program::kCheck);
}
