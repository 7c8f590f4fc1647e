// SPDX-License-Identifier: Apache-2.0
//
// What a selection kernel promises, checked against its own scores (SPEC
// section 11): a chain valid < values < set, and three orders that each add to
// set. One judge finds every level that holds; it never stops at the first
// fault.
//
// A list of a row of n scores has min(n, k) entries that are positions of the
// row; entries past them are padding and must be -1. A judge is prepared once a
// row and then judges any number of lists of that row, in O(n / 8 + k) each, so
// that negative controls are cheap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace exact_topk::oracle {

enum class Contract { kValid, kValues, kSet, kPosition, kSorted, kBase };

std::string_view to_string(Contract contract);
std::optional<Contract> parse_contract(std::string_view text);

// How values rank, where a kernel declares other rules than the radix key's.
// Base order knows no other rules; whoever asks for both made a mistake.
struct ValueRules {
  bool nan_last = false;     // every NaN is one value below -inf
  bool zeros_equal = false;  // -0.0 and +0.0 are one value
};

// The radix key that a score ranks by under the rules: 0 for a NaN that is
// last, +0.0's for a zero of either sign where they are equal.
std::uint32_t ranked_key(float score, ValueRules rules);

struct ListVerdict {
  // Each on its own; true: it held.
  bool count = false;       // padding, and only padding, past min(n, k)
  bool range = false;       // each of the first min(n, k) is a key of the row
  bool duplicates = false;  // no key is named twice
  bool values =
      false;         // distinct keys named have the top k's multiset of values
  bool set = false;  // and they are the top k, ties to the lowest position
  bool position = false;  // ascending positions
  bool sorted = false;    // values descending, equal ones by position
  bool base = false;      // the base order, entry by entry

  std::int64_t entries_wrong_count = 0;  // entries past min(n, k) not -1, or
                                         // short of it
  std::int64_t out_of_range = 0;         // of the first min(n, k)
  std::int64_t duplicate_entries = 0;    // entries whose key came before
  std::int64_t missed = 0;       // keys of the exact top k that the list lacks
  std::int64_t missed_ties = 0;  // those of them equal to T
  std::int64_t extra = 0;  // distinct keys named that are not of the top k
  std::int64_t order_errors = 0;      // entries that differ from the base order
  int bits = 0;                       // of the base order
  std::uint32_t threshold = 0;        // T, under the value rules
  std::int64_t ties = 0;              // keys of the row equal to T
  std::vector<std::int32_t> missing;  // missed positions, the first 16
  std::vector<std::int32_t> extras;   // extra positions, the first 16
  std::int64_t first_order_error = -1;  // index of the first; -1: none

  bool holds(Contract contract) const;
};

class ListJudge {
 public:
  // `scores` must outlive the judge. k >= 1.
  ListJudge(std::span<const float> scores, int k, ValueRules rules = {});

  ListVerdict judge(std::span<const std::int32_t> entries) const;

  std::size_t keys() const { return scores_.size(); }  // n
  // The positions of the top k under the value rules, ascending.
  const std::vector<std::int32_t>& top_k() const { return top_k_; }
  // The base order of the scores, which knows no value rules.
  const std::vector<std::int32_t>& base_positions() const { return base_; }

 private:
  void set_last_tie();
  std::uint32_t key(std::int32_t position) const;
  bool selected(std::int32_t position) const;

  std::span<const float> scores_;
  ValueRules rules_;
  std::vector<std::int32_t> top_k_;
  std::vector<std::int32_t> base_;
  int bits_ = 0;                 // of the base order
  std::uint32_t threshold_ = 0;  // T, under the value rules
  std::int32_t last_tie_ = -1;   // last selected position equal to T
  std::int64_t ties_ = 0;        // keys of the row equal to T
};

// A judge used once.
ListVerdict judge_list(std::span<const std::int32_t> entries,
                       std::span<const float> scores, int k,
                       ValueRules rules = {});

}  // namespace exact_topk::oracle
