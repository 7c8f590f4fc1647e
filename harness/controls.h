// SPDX-License-Identifier: Apache-2.0
//
// Negative controls (SPEC section 6): a copy of a row's result is spoiled in a
// known way and judged by the very function that judged the row. A control that
// is not caught by the check meant for it means that the check is broken, and
// fails the case.
//
//   replaced  (a) the last entry becomes the best unselected key's slot: set;
//                 n <= k: a slot outside the row: range
//   swapped   (b) two entries change places (n >= 2): order
//   flipped   (c) bit 30 of the score with the largest |reference|: scores
//   raised    (d) one score becomes its reference + 2 * bound * largest, or the
//                 next f32 above what is allowed where that is no change:
//                 scores
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "harness/checks/list.h"
#include "oracle/contract.h"
#include "oracle/score_verdict.h"

namespace exact_topk::harness {

// The functions that judge rows and that controls prove. Tests put broken ones
// here.
struct Judges {
  std::function<oracle::ScoreVerdict(std::span<const float>,
                                     const oracle::RowScores&, double)>
      scores = oracle::judge_scores;
  std::function<RowListVerdict(const oracle::ListJudge&, const SlotMap&,
                               const RowList&)>
      list = judge_row_list;
};

// What came of the controls of a case.
struct ControlTally {
  int64_t run = 0;      // controls made
  int64_t caught = 0;   // of those, caught by the check meant for them
  std::string escaped;  // the first that was not: which, and by what check
  void add(const Where& where, const char* control, const char* check,
           bool was_caught);
};

// (a) and (b).
void control_list(ControlTally& tally, const Where& where, const Judges& judges,
                  oracle::Contract contract, const oracle::ListJudge& judge,
                  const SlotMap& slots, const RowList& row,
                  std::span<const float> scores);
// (c) and (d).
void control_scores(ControlTally& tally, const Where& where,
                    const Judges& judges, std::span<const float> scores,
                    const oracle::RowScores& reference, double bound);

}  // namespace exact_topk::harness
