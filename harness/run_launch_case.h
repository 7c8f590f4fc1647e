// SPDX-License-Identifier: Apache-2.0
//
// Runs and judges a case of the whole indexer chain (SPEC section 3): launches
// (layers) one after another, on each its steps, on each the arms; every launch
// is judged as soon as it is done, and its leaves are dumped. The case's last
// launch is then repeated with other poison and other fillings, scratch left
// alone, and must give the same bits.
#pragma once

#include "harness/case_context.h"
#include "harness/result.h"

namespace exact_topk::harness {

// What this rank judged. Collective over the group.
CaseResult run_launch_case(const CaseContext& context);

}  // namespace exact_topk::harness
