// SPDX-License-Identifier: Apache-2.0
//
// Which cases a run has: the case options or a suite, less what --filter and
// --start-at leave out.
#pragma once

#include <vector>

#include "cases/case.h"
#include "harness/options.h"

namespace exact_topk::harness {

// In listed order. UsageError where options or the suite are bad, where nothing
// is left, and where some T up to `ranks` does not divide it.
std::vector<cases::Case> select_cases(const Options& options, int ranks);

}  // namespace exact_topk::harness
