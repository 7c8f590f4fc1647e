// SPDX-License-Identifier: Apache-2.0
//
// main of the programs that run cases: brings up MPI and the guards, and takes
// the one way out.
#pragma once

#include "harness/options.h"

namespace exact_topk::harness {

// Does not return.
[[noreturn]] void run_program(int argc, char** argv, Program program);

}  // namespace exact_topk::harness
