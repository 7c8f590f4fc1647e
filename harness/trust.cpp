// SPDX-License-Identifier: Apache-2.0
#include "harness/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "oracle/select.h"

namespace exact_topk::harness {
namespace {

constexpr int64_t kFirstJudgedPosition = 8447;  // shorter cases are not judged
constexpr int64_t kRecentKeys = 4096;       // what the cache `recent` favours
constexpr int64_t kRecentFromKeys = 65536;  // rows long enough to tell
constexpr int64_t kNarrowFromKeys = 8192;
constexpr int kNarrowBits = 24;

}  // namespace

RowFacts row_facts(std::span<const float> scores,
                   const oracle::ListJudge& judge,
                   const oracle::ListVerdict& verdict) {
  const std::vector<int32_t>& winners = judge.top_k();
  RowFacts facts;
  facts.keys = int64_t(scores.size());
  facts.bits = verdict.bits;
  facts.recent_winners =
      winners.end() - std::lower_bound(winners.begin(), winners.end(),
                                       facts.keys - kRecentKeys);
  facts.all_equal = std::all_of(scores.begin(), scores.end(), [&](float s) {
    return std::bit_cast<uint32_t>(s) == std::bit_cast<uint32_t>(scores[0]);
  });
  const int64_t selected_ties =
      std::count_if(winners.begin(), winners.end(), [&](int32_t j) {
        return oracle::radix_key(scores[size_t(j)]) == verdict.threshold;
      });
  facts.tie_across_cut = verdict.ties > selected_ties;
  return facts;
}

std::string mistrusted(const cases::Case& item,
                       std::span<const RowFacts> rows) {
  if (item.stage != cases::Stage::kLaunch || item.pos < kFirstJudgedPosition)
    return "";
  const int64_t k = item.geometry.k;
  const auto any = [&](int64_t from_keys, auto holds) {
    return std::any_of(rows.begin(), rows.end(), [&](const RowFacts& row) {
      return row.keys >= from_keys && holds(row);
    });
  };
  const auto present = [](const RowFacts&) { return true; };

  if (!any(k + 1, present))
    return fmt::format("no row has more than k = {} keys", k);
  if (item.cache != "zeros" &&
      !any(k + 1, [](const RowFacts& row) { return !row.all_equal; }))
    return "in every row of more than k keys all scores are equal";
  if (item.cache == "ties" &&
      !any(0, [](const RowFacts& row) { return row.tie_across_cut; }))
    return "no row has a tie across the cut";
  if (item.cache == "recent" && any(kRecentFromKeys, present) &&
      !any(kRecentFromKeys, [&](const RowFacts& row) {
        return row.recent_winners * row.keys > 2 * k * kRecentKeys;
      }))
    return fmt::format(
        "no row of {} keys or more has more winners in its last {} keys than "
        "twice chance",
        kRecentFromKeys, kRecentKeys);
  if (item.cache == "narrow" && any(kNarrowFromKeys, present) &&
      !any(kNarrowFromKeys,
           [](const RowFacts& row) { return row.bits == kNarrowBits; }))
    return fmt::format("no row of {} keys or more stops at {} bits",
                       kNarrowFromKeys, kNarrowBits);
  return "";
}

}  // namespace exact_topk::harness
