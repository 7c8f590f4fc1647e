// SPDX-License-Identifier: Apache-2.0
//
// The checks "repeat" and "arms": results of two runs of the same work, bit for
// bit (SPEC section 6, check 5).
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/case_context.h"
#include "harness/snapshot.h"

namespace exact_topk::harness {

// `where(row)` places a row of the step.
template <typename RowPlace>
void record_repeat(CheckLog& log, const CaseContext& context,
                   const std::vector<Piece>& first,
                   const std::vector<Piece>& again, int attempt,
                   RowPlace where) {
  if (!context.library.describe().repeatable) {
    log.untested("repeat",
                 "the candidate does not claim the same bits in every replay");
    return;
  }
  for (size_t i = 0; i < again.size(); ++i)
    log.record("repeat", where(again[i].row),
               difference(first[i], again[i], "the first run",
                          fmt::format("repeat {}", attempt)));
}

template <typename RowPlace>
void record_arms(CheckLog& log, const CaseContext& context,
                 const std::vector<Piece>& first_arm,
                 const std::vector<Piece>& mine, const std::string& arm,
                 RowPlace where) {
  for (size_t i = 0; i < mine.size(); ++i)
    log.record(
        "arms", where(mine[i].row),
        difference(first_arm[i], mine[i],
                   "arm " + context.settings.arms.front(), "arm " + arm));
}

}  // namespace exact_topk::harness
