// SPDX-License-Identifier: Apache-2.0
//
// Makes a row that a selector gets wrong smaller, so that a person can look at
// it (--shrink): fewer distinct scores, fewer keys that differ from the lowest,
// a smaller k, fewer keys. Whatever still fails is kept.
//
// How it works: each of these is a set of things of which chunks are left out,
// halving the chunk until single things cannot be left out any more (delta
// debugging). The result is small, not the smallest: another order of attempts
// may end elsewhere. A failure that comes and goes ends wherever it was last
// seen.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "oracle/contract.h"

namespace exact_topk::harness {

// The list, as positions, that a selector gives for a row and k; empty where it
// gave none, which is no failure of the kind looked for.
using RowSelector =
    std::function<std::vector<int32_t>(std::span<const float>, int k)>;

struct ShrinkRules {
  oracle::Contract contract{};  // a row fails where its list does not hold it
  oracle::ValueRules values;    // how scores rank
  int64_t most_calls = 0;       // of the selector
};

struct SmallRow {
  std::vector<float> scores;  // [n]
  int k = 0;                  // entries of a full list
  std::vector<int32_t> list;  // what the selector gave: it fails
  int64_t distinct = 0;       // scores, by their bits
  int64_t calls = 0;          // of the selector
  bool operator==(const SmallRow&) const = default;
};

// An empty list where the row does not fail to begin with.
SmallRow shrink_row(std::span<const float> scores, int k,
                    const ShrinkRules& rules, const RowSelector& selector);

}  // namespace exact_topk::harness
