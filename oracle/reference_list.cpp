// SPDX-License-Identifier: Apache-2.0
#include "oracle/reference_list.h"

#include <algorithm>
#include <compare>

namespace exact_topk::oracle {
namespace {

// The count-th largest; NaN has its place in the total order.
double nth_largest(std::vector<double> values, std::size_t count) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::nth_element(values, nth, [](double a, double b) {
    return std::strong_order(a, b) > 0;
  });
  return *nth;
}

}  // namespace

std::vector<float> rounded(std::span<const double> reference) {
  std::vector<float> scores(reference.size());
  std::ranges::transform(reference, scores.begin(), [](double value) {
    return static_cast<float>(value);
  });
  return scores;
}

BaseOrder reference_order(std::span<const double> reference, int k) {
  return base_order(rounded(reference), k);
}

ReferenceVerdict judge_against_reference(
    std::span<const std::int32_t> positions, const RowScores& reference, int k,
    double bound) {
  const std::vector<float> scores = rounded(reference.value);
  const ListJudge judge(scores, k);
  ReferenceVerdict verdict;
  verdict.exact = judge.judge(positions);
  verdict.top_k = judge.top_k();
  const std::vector<std::int32_t>& top = verdict.top_k;
  if (top.empty()) return verdict;
  verdict.threshold = nth_largest(reference.value, top.size());
  verdict.margin = 2.0 * bound * reference.largest;

  const auto value = [&](std::int32_t position) {
    return reference.value[static_cast<std::size_t>(position)];
  };
  std::vector<bool> listed(scores.size(), false);
  const std::size_t entries = std::min(positions.size(), top.size());
  for (std::size_t i = 0; i < entries; ++i) {
    const std::int32_t p = positions[i];
    if (p < 0 || static_cast<std::size_t>(p) >= scores.size()) continue;
    listed[static_cast<std::size_t>(p)] = true;
    // Not `<`: a NaN is beyond.
    if (!std::ranges::binary_search(top, p) &&
        !(value(p) >= verdict.threshold - verdict.margin) &&
        verdict.extra_beyond++ == 0)
      verdict.first_extra_beyond = static_cast<std::int64_t>(i);
  }
  for (const std::int32_t p : top)
    if (!listed[static_cast<std::size_t>(p)] &&
        !(value(p) <= verdict.threshold + verdict.margin) &&
        verdict.missed_beyond++ == 0)
      verdict.first_missed_beyond = p;
  return verdict;
}

}  // namespace exact_topk::oracle
