// SPDX-License-Identifier: Apache-2.0
//
// What an engineer needs to see of a row that failed: the cut, the keys that
// are missing and extra with their scores and ranks, the first place where the
// order leaves, and leads.
//
// A lead is a pattern of the faults that a known bug leaves behind, told with
// its evidence. It is no verdict: another bug may leave the same pattern, and a
// bug may leave none. Known patterns: ties broken by arrival, NaN or signed
// zeros ranked by other rules, a dropped candidate buffer (the missing keys are
// one radix bin's last arrivals), one lost slice, slots of a foreign page, and
// for scores a stale scale, a common factor and a wrong page.
//
// This is for rows that failed: it costs a few passes over the row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "oracle/contract.h"
#include "oracle/scores.h"

namespace exact_topk::harness {

// Of a rank's rows, the first that fail are diagnosed: this many.
inline constexpr int kDiagnosedRows = 3;

struct FailedList {
  std::span<const float> scores;       // [n]
  int k = 0;                           // entries of a full list
  oracle::Contract contract{};         // what was promised
  oracle::ValueRules rules;            // under which it was judged
  std::span<const int32_t> positions;  // the list; negative: no key of the row
  std::span<const int64_t>
      slots;  // the same as saved; empty: they are positions
};

// One line a fact, leads last ("lead: ..."). Nothing is said of what is right.
std::vector<std::string> diagnose_list(const FailedList& row);

struct FailedScores {
  std::span<const float> scores;        // [n]
  const oracle::RowScores& reference;   // of the same keys
  std::span<const int64_t> wrong;       // positions that fail, ascending
  double allowed = 0;                   // distance from the reference, absolute
  std::function<float(int64_t)> scale;  // cached scale of the key at a position
};

std::vector<std::string> diagnose_scores(const FailedScores& row);

}  // namespace exact_topk::harness
