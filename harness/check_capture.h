// SPDX-License-Identifier: Apache-2.0
//
// Judges the rows of a capture (SPEC sections 10 and 11): each list against
// the row's own scores, and where the capture has what they were computed from
// the scores against f64. Every verdict stands on its own: a wrong score does
// not excuse a list, nor the other way round.
//
// The checks are, in this order, count, range, duplicates, values, set, ties,
// order and scores. What the contract does not promise is UNTESTED; levels that
// hold all the same are found and listed. Rows are independent and are judged
// on all processors, one row in hand each.
#pragma once

#include <cstdint>
#include <utility>

#include "harness/capture.h"
#include "harness/result.h"
#include "oracle/contract.h"

namespace exact_topk::harness {

struct CaptureRules {
  oracle::Contract contract{};  // what the lists must hold
  oracle::ValueRules values;    // how values rank
  double bound =
      1e-4;         // largest score error over the row's largest |reference|
  int threads = 1;  // at most
};

// The part [rows.first, rows.second) of the capture. Name, repro and seconds
// are left to the caller.
CaseResult check_capture(const Capture& capture, const CaptureRules& rules,
                         std::pair<int64_t, int64_t> rows);

}  // namespace exact_topk::harness
