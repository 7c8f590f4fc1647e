// SPDX-License-Identifier: Apache-2.0
//
// The verdicts of a list on the contract ladder (SPEC section 11) as checks:
// count, range, duplicates, values, set, ties and order, each on its own.
//
// A check whose level the contract promises is recorded with what is wrong; one
// that it does not promise is untested. The levels that held all the same are
// kept by Levels (harness/levels.h).
#pragma once

#include "harness/checks/check_log.h"
#include "oracle/contract.h"
#include "oracle/list_faults.h"

namespace exact_topk::harness {

// `values` is a check of its own where the contract is values alone, and of all
// contracts above it with `values_too`: there it follows from set.
void record_ladder(CheckLog& log, const Where& where, oracle::Contract contract,
                   const oracle::ListFaults& faults, bool values_too);

}  // namespace exact_topk::harness
