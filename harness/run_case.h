// SPDX-License-Identifier: Apache-2.0
//
// Runs one case against a candidate and judges it (SPEC section 6).
//
// Every rank of the group calls it with the same case. It returns what this
// rank judged; result.h merges the parts. What needs all rows, MISTRUSTED and
// that controls ran at all, is agreed on in the group and the same on every
// rank.
//
// A candidate's XTK_FAILED from a launch, a selection or a scoring fails the
// case (check "launch"). Any other failure of a call is a CandidateError that
// leaves run_case and ends the run.
#pragma once

#include "cases/case.h"
#include "harness/dump_sink.h"
#include "harness/group.h"
#include "harness/loader.h"
#include "harness/result.h"
#include "harness/settings.h"

namespace exact_topk::harness {

// `sink` may be null. `weights` is kept from case to case.
CaseResult run_case(const cases::Case& item, int case_index,
                    const Settings& settings, const Group& group,
                    SharedInputs& weights, const Library& library,
                    DumpSink* sink);

}  // namespace exact_topk::harness
