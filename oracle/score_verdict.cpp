// SPDX-License-Identifier: Apache-2.0
#include "oracle/score_verdict.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace exact_topk::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// error / unit, where nothing over nothing is nothing.
double ratio(double error, double unit) {
  if (error == 0) return 0;
  return unit > 0 ? error / unit : kInfinity;
}

std::string value_text(float value) {
  return fmt::format("{:.9g} ({:#010x})", value,
                     std::bit_cast<std::uint32_t>(value));
}

// Infinite where the score is a NaN or an infinity.
double distance(float score, double reference) {
  const double d = std::abs(double{score} - reference);
  return std::isfinite(d) ? d : kInfinity;
}

// Whether score j fails, `allowed` away from its reference or further in a
// format that is narrower than f32.
bool fails(float score, const RowScores& reference, size_t j, double allowed,
           ScoreFormat format) {
  if (reference.zero[j] != 0) return score != 0.0f;
  const double d = distance(score, reference.value[j]);
  return !(d <= allowed + half_ulp(score, format)) || d == kInfinity;
}

}  // namespace

std::vector<std::int64_t> wrong_scores(std::span<const float> scores,
                                       const RowScores& reference, double bound,
                                       ScoreFormat format) {
  const double allowed = bound * reference.largest;
  std::vector<std::int64_t> wrong;
  for (size_t j = 0; j < scores.size(); ++j)
    if (fails(scores[j], reference, j, allowed, format))
      wrong.push_back(std::int64_t(j));
  return wrong;
}

ScoreVerdict judge_scores(std::span<const float> scores,
                          const RowScores& reference, double bound) {
  return judge_kept_scores(scores, reference, bound, ScoreFormat::kF32);
}

ScoreVerdict judge_kept_scores(std::span<const float> scores,
                               const RowScores& reference, double bound,
                               ScoreFormat format) {
  ScoreVerdict verdict;
  const double allowed = bound * reference.largest;
  double max_error = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    const double error = distance(scores[j], reference.value[j]);
    if (fails(scores[j], reference, j, allowed, format) &&
        verdict.faults++ == 0)
      verdict.first = std::int64_t(j);
    if (error > max_error) max_error = error;
    const double rounding = ratio(error, double{reference.bound[j]});
    if (rounding > verdict.max_bound_ratio) {
      verdict.max_bound_ratio = rounding;
      verdict.worst_rounding = std::int64_t(j);
    }
  }
  verdict.max_error = ratio(max_error, reference.largest);
  return verdict;
}

std::string scores_fault(const ScoreVerdict& verdict,
                         std::span<const float> scores,
                         const RowScores& reference, double bound) {
  if (verdict.faults == 0) return "";
  const auto j = std::size_t(verdict.first);
  if (reference.zero[j] != 0)
    return fmt::format(
        "score {} is {}, and must be 0 since no term is nonzero; {} of {} "
        "scores fail",
        j, value_text(scores[j]), verdict.faults, scores.size());
  return fmt::format(
      "score {} is {}, the reference {:.17g}: off by {:.3g} of the largest "
      "{:.9g}, allowed {:.3g}; {} of {} scores fail",
      j, value_text(scores[j]), reference.value[j],
      ratio(std::abs(double{scores[j]} - reference.value[j]),
            reference.largest),
      reference.largest, bound, verdict.faults, scores.size());
}

std::string rounding_fault(const ScoreVerdict& verdict,
                           std::span<const float> scores,
                           const RowScores& reference) {
  if (verdict.max_bound_ratio <= kOwnRoundingBounds) return "";
  const auto j = std::size_t(verdict.worst_rounding);
  return fmt::format(
      "score {} is {}, the reference {:.17g}: off by {:.3g} of its rounding "
      "bound {:.3g}, allowed {}",
      j, value_text(scores[j]), reference.value[j], verdict.max_bound_ratio,
      reference.bound[j], kOwnRoundingBounds);
}

}  // namespace exact_topk::oracle
