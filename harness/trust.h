// SPDX-License-Identifier: Apache-2.0
//
// MISTRUSTED: a case that matched but proves little (SPEC section 6). Facts are
// taken of every live row of every launch and step, gathered over the group,
// and judged a case at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cases/case.h"
#include "oracle/contract.h"

namespace exact_topk::harness {

// What a row could have shown. Plain bytes: ranks exchange these as they are.
struct RowFacts {
  int64_t keys = 0;             // n
  int64_t recent_winners = 0;   // of the top k, in the last 4,096 positions
  int32_t bits = 0;             // at which the base order stopped
  bool all_equal = false;       // every score has the same bits
  bool tie_across_cut = false;  // keys equal to T on both sides of the cut
};

RowFacts row_facts(std::span<const float> scores,
                   const oracle::ListJudge& judge,
                   const oracle::ListVerdict& verdict);

// Why the case is mistrusted; empty where it is not.
std::string mistrusted(const cases::Case& item, std::span<const RowFacts> rows);

}  // namespace exact_topk::harness
