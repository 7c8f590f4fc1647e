// SPDX-License-Identifier: Apache-2.0
//
// time_topk: times an indexer by replay, on cases that the judging of
// check_topk has passed (SPEC section 9). Everything is in the library.
#include "harness/program.h"

int main(int argc, char** argv) {
  using namespace exact_topk::harness;
  run_program(argc, argv, Program::kTime);
}
