// SPDX-License-Identifier: Apache-2.0
#include "oracle/contract.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "oracle/select.h"

namespace exact_topk::oracle {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kNamedPositions = 16;  // at most, of missing and extras

constexpr std::array<std::pair<Contract, std::string_view>, 6> kNames = {{
    {Contract::kValid, "valid"sv},
    {Contract::kValues, "values"sv},
    {Contract::kSet, "set"sv},
    {Contract::kPosition, "position"sv},
    {Contract::kSorted, "sorted"sv},
    {Contract::kBase, "base"sv},
}};

// A set of positions below n, to be asked whether a position is new.
class Seen {
 public:
  explicit Seen(std::size_t n) : words_((n + 63) / 64, 0) {}
  // False where the position was there already.
  bool insert(std::int32_t position) {
    const std::size_t index = static_cast<std::size_t>(position);
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    const bool fresh = (words_[index / 64] & bit) == 0;
    words_[index / 64] |= bit;
    return fresh;
  }
  bool contains(std::int32_t position) const {
    const std::size_t index = static_cast<std::size_t>(position);
    return (words_[index / 64] >> (index % 64) & 1) != 0;
  }

 private:
  std::vector<std::uint64_t> words_;
};

void name_position(std::vector<std::int32_t>& named, std::int32_t position) {
  if (named.size() < kNamedPositions) named.push_back(position);
}

}  // namespace

std::string_view to_string(Contract contract) {
  return kNames[static_cast<std::size_t>(contract)].second;
}

std::optional<Contract> parse_contract(std::string_view text) {
  for (const auto& [contract, name] : kNames)
    if (name == text) return contract;
  return std::nullopt;
}

std::uint32_t ranked_key(float score, ValueRules rules) {
  if (rules.nan_last && std::isnan(score)) return 0;
  if (rules.zeros_equal && score == 0.0f) return radix_key(0.0f);
  return radix_key(score);
}

bool ListVerdict::holds(Contract contract) const {
  const bool valid = count && range && duplicates;
  switch (contract) {
    case Contract::kValid:
      return valid;
    case Contract::kValues:
      return valid && values;
    case Contract::kSet:
      return valid && set;
    case Contract::kPosition:
      return valid && set && position;
    case Contract::kSorted:
      return valid && set && sorted;
    case Contract::kBase:
      return valid && set && base;
  }
  return false;
}

ListJudge::ListJudge(std::span<const float> scores, int k, ValueRules rules)
    : scores_(scores), rules_(rules) {
  BaseOrder order = base_order(scores, k);
  base_ = std::move(order.positions);
  bits_ = order.bits;
  if (!rules.nan_last && !rules.zeros_equal) {
    // The base order lists the exact top k.
    top_k_ = base_;
    std::ranges::sort(top_k_);
    threshold_ = order.threshold;
    ties_ = order.ties;
    set_last_tie();
    return;
  }

  std::vector<std::uint32_t> keys(scores.size());
  std::ranges::transform(scores, keys.begin(), [rules](float score) {
    return ranked_key(score, rules);
  });
  top_k_ = exact_top_k(keys, k);
  if (top_k_.empty()) return;
  threshold_ = key(*std::ranges::min_element(
      top_k_, {}, [this](std::int32_t position) { return key(position); }));
  ties_ = std::ranges::count(keys, threshold_);
  set_last_tie();
}

void ListJudge::set_last_tie() {
  for (const std::int32_t position : top_k_)
    if (key(position) == threshold_) last_tie_ = position;
}

std::uint32_t ListJudge::key(std::int32_t position) const {
  return ranked_key(scores_[static_cast<std::size_t>(position)], rules_);
}

bool ListJudge::selected(std::int32_t position) const {
  const std::uint32_t rank = key(position);
  return rank > threshold_ || (rank == threshold_ && position <= last_tie_);
}

ListVerdict ListJudge::judge(std::span<const std::int32_t> entries) const {
  ListVerdict verdict;
  verdict.bits = bits_;
  verdict.threshold = threshold_;
  verdict.ties = ties_;

  const std::size_t expected = top_k_.size();
  const std::span<const std::int32_t> list =
      entries.first(std::min(entries.size(), expected));
  verdict.entries_wrong_count =
      static_cast<std::int64_t>(expected - list.size()) +
      std::ranges::count_if(entries.subspan(list.size()),
                            [](std::int32_t entry) { return entry != -1; });

  Seen seen(scores_.size());
  std::size_t distinct = 0, hits = 0;
  bool extras_tie = true;  // every extra key equals T
  bool ascending = true, descending = true;
  std::int32_t before = -1;  // the last entry in range; -1: none yet
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::int32_t entry = list[i];
    if (entry != base_[i] && verdict.order_errors++ == 0)
      verdict.first_order_error = static_cast<std::int64_t>(i);
    if (entry < 0 || static_cast<std::size_t>(entry) >= scores_.size()) {
      ++verdict.out_of_range;
      continue;
    }
    if (before >= 0) {
      const std::uint32_t key_before = key(before), key_now = key(entry);
      ascending &= before < entry;
      descending &=
          key_before > key_now || (key_before == key_now && before < entry);
    }
    before = entry;
    if (!seen.insert(entry)) {
      ++verdict.duplicate_entries;
      continue;
    }
    ++distinct;
    if (selected(entry)) {
      ++hits;
    } else {
      ++verdict.extra;
      extras_tie &= key(entry) == threshold_;
      name_position(verdict.extras, entry);
    }
  }
  verdict.order_errors += static_cast<std::int64_t>(expected - list.size());
  if (verdict.first_order_error < 0 && list.size() < expected)
    verdict.first_order_error = static_cast<std::int64_t>(list.size());

  verdict.missed = static_cast<std::int64_t>(expected - hits);
  if (verdict.missed > 0) {
    for (const std::int32_t position : top_k_) {
      if (seen.contains(position)) continue;
      verdict.missed_ties += key(position) == threshold_ ? 1 : 0;
      name_position(verdict.missing, position);
    }
  }

  verdict.count = verdict.entries_wrong_count == 0;
  verdict.range = verdict.out_of_range == 0;
  verdict.duplicates = verdict.duplicate_entries == 0;
  // Keys swapped for others leave the multiset alone only where all are ties.
  verdict.values = distinct == expected &&
                   verdict.missed == verdict.missed_ties && extras_tie;
  verdict.set = verdict.missed == 0 && verdict.extra == 0;
  verdict.position = ascending;
  verdict.sorted = descending;
  verdict.base = verdict.order_errors == 0;
  return verdict;
}

ListVerdict judge_list(std::span<const std::int32_t> entries,
                       std::span<const float> scores, int k, ValueRules rules) {
  return ListJudge(scores, k, rules).judge(entries);
}

}  // namespace exact_topk::oracle
