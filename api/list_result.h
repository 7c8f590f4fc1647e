// SPDX-License-Identifier: Apache-2.0
//
// What every check of a list puts into its result: the counts and levels of a
// verdict, and how near the listed keys' scores are to the top k's.
#pragma once

#include <exact_topk/exact_topk.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "api/arguments.h"
#include "oracle/agreement.h"
#include "oracle/contract.h"

namespace exact_topk::api {

// A result in which nothing was found.
exact_topk_result blank_result();

// blank_result() with all of a verdict but `held` and the first fault.
exact_topk_result list_result(const oracle::ListVerdict& verdict);

// The scores of the distinct keys that the list names against those of the top
// k; value_of(position) is a key's score.
template <typename ValueOf>
oracle::Agreement listed_agreement(const List& list,
                                   const std::vector<std::int32_t>& top_k,
                                   std::int64_t keys, ValueOf value_of) {
  std::vector<std::int32_t> listed(
      list.positions.begin(),
      list.positions.begin() + static_cast<std::ptrdiff_t>(std::min(
                                   list.positions.size(), top_k.size())));
  std::erase_if(listed, [keys](std::int32_t p) { return p < 0 || p >= keys; });
  std::ranges::sort(listed);
  listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
  const auto values = [&](const std::vector<std::int32_t>& positions) {
    std::vector<double> found(positions.size());
    std::ranges::transform(positions, found.begin(), value_of);
    return found;
  };
  return oracle::sorted_agreement(values(top_k), values(listed));
}

}  // namespace exact_topk::api
