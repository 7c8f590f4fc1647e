// SPDX-License-Identifier: Apache-2.0
//
// A row's scores against the f64 reference (SPEC section 6, check 1).
//
// A score fails where its distance from the reference is more than `bound`
// times the row's largest |reference|, where it is a NaN or an infinity, and
// where the reference has no nonzero term and the score is not zero. Apart from
// that, the largest distance in units of the score's own f32 rounding bound is
// reported, which is what our own candidates are held to: 16 times the bound
// leaves room for any order of the sums and none for a dropped bit elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle/score_format.h"
#include "oracle/scores.h"

namespace exact_topk::oracle {

// The most that a score of our own candidates may be off, in rounding bounds.
inline constexpr double kOwnRoundingBounds = 16;

struct ScoreVerdict {
  std::int64_t faults = 0;     // scores that fail
  std::int64_t first = -1;     // position of the first of them
  double max_error = 0;        // over the largest |reference|; infinite for NaN
  double max_bound_ratio = 0;  // over the score's own rounding bound
  std::int64_t worst_rounding = -1;  // position of that
};

ScoreVerdict judge_scores(std::span<const float> scores,
                          const RowScores& reference, double bound);
// The same of scores that were kept in another format: they may be half an ulp
// of it further away.
ScoreVerdict judge_kept_scores(std::span<const float> scores,
                               const RowScores& reference, double bound,
                               ScoreFormat format);
// The positions of the scores that fail.
std::vector<std::int64_t> wrong_scores(std::span<const float> scores,
                                       const RowScores& reference, double bound,
                                       ScoreFormat format);

// What is wrong, empty where nothing is: the bound, and the own candidates'.
std::string scores_fault(const ScoreVerdict& verdict,
                         std::span<const float> scores,
                         const RowScores& reference, double bound);
std::string rounding_fault(const ScoreVerdict& verdict,
                           std::span<const float> scores,
                           const RowScores& reference);

}  // namespace exact_topk::oracle
