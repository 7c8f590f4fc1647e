// SPDX-License-Identifier: Apache-2.0
//
// A run of `check_topk --capture FILE` (SPEC section 10): the capture is one
// case, its rows are shared among the ranks, and reports and exit status are
// those of any run. No candidate is opened.
#pragma once

#include "harness/group.h"
#include "harness/settings.h"

namespace exact_topk::harness {

// Returns the exit status, the same on every rank. Collective over the world.
int run_capture(const Group& world, const Settings& settings);

}  // namespace exact_topk::harness
