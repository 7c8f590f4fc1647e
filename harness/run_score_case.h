// SPDX-License-Identifier: Apache-2.0
//
// Runs and judges a case of scoring alone: queries, weights and a cache are
// handed to xtk_score, whose scores are judged as those of a launch are. With
// integers every order of the sums gives the same bits, so the bound is 0.
#pragma once

#include "harness/case_context.h"
#include "harness/result.h"

namespace exact_topk::harness {

// What this rank judged. Collective over the group.
CaseResult run_score_case(const CaseContext& context);

}  // namespace exact_topk::harness
