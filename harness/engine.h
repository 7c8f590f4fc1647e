// SPDX-License-Identifier: Apache-2.0
//
// The run of check_topk from its options to its exit status (SPEC section 7),
// on every rank of the world.
//
// Steps that can go wrong are taken together (together.h), before the first
// case where they can be: the cases, the library and its arm, the report files,
// the digest tree. Then groups take cases from a queue (case_queue.h), judge
// them (run_case.h) and print results as they come; at the end every rank has
// all results in listed order, agrees on the status, and rank 0 writes tree,
// reports and summary.
#pragma once

#include "harness/options.h"

namespace exact_topk::harness {

// Returns the exit status, the same on every rank. MPI is initialised and
// failure::install() has been called. An exception that leaves it is this
// rank's alone: main hands it to failure::fail().
int run(const Parsed& parsed);

}  // namespace exact_topk::harness
