// SPDX-License-Identifier: Apache-2.0
//
// Runs and judges a case of selection alone: rows of scores are handed to
// xtk_select between guards, and its lists are judged as those of a launch are.
#pragma once

#include "harness/case_context.h"
#include "harness/result.h"

namespace exact_topk::harness {

// What this rank judged. Collective over the group.
CaseResult run_select_case(const CaseContext& context);

}  // namespace exact_topk::harness
