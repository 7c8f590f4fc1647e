// SPDX-License-Identifier: Apache-2.0
#include "api/list_result.h"

namespace exact_topk::api {

exact_topk_result blank_result() {
  exact_topk_result result{};
  result.struct_size = sizeof result;
  result.first_index = -1;
  result.first_position = -1;
  result.cosine = 1.0;
  return result;
}

exact_topk_result list_result(const oracle::ListVerdict& verdict) {
  exact_topk_result result = blank_result();
  for (int level = EXACT_TOPK_VALID; level <= EXACT_TOPK_BASE; ++level)
    if (verdict.holds(static_cast<oracle::Contract>(level - EXACT_TOPK_VALID)))
      result.levels |= 1u << level;
  result.bits = verdict.bits;
  result.faults = verdict.entries_wrong_count + verdict.out_of_range +
                  verdict.duplicate_entries;
  result.missed = verdict.missed;
  result.missed_ties = verdict.missed_ties;
  result.extra = verdict.extra;
  result.order_errors = verdict.order_errors;
  return result;
}

}  // namespace exact_topk::api
