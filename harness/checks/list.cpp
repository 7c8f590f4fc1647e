// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/list.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/checks/ladder.h"
#include "oracle/pages.h"

namespace exact_topk::harness {

SlotMap::SlotMap(std::span<const int32_t> table, int64_t keys) : keys_(keys) {
  if (table.empty() || keys == 0) return;
  table_ = table.first(size_t(oracle::pages_of(keys)));
  page_.assign(size_t(*std::max_element(table_.begin(), table_.end())) + 1, -1);
  for (size_t j = 0; j < table_.size(); ++j)
    page_[size_t(table_[j])] = int32_t(j);
}

int32_t SlotMap::position(int32_t slot) const {
  if (slot < 0) return -1;
  if (table_.empty()) return slot < keys_ ? slot : -1;
  const auto page = size_t(slot / oracle::kPageTokens);
  if (page >= page_.size() || page_[page] < 0) return -1;
  const int32_t position =
      page_[page] * oracle::kPageTokens + slot % oracle::kPageTokens;
  return position < keys_ ? position : -1;
}

int32_t SlotMap::slot(int32_t position) const {
  return table_.empty() ? position : int32_t(oracle::slot_of(table_, position));
}

int32_t SlotMap::outside() const {
  if (table_.empty()) return int32_t(keys_);
  // The token after the last in the same page, else the pad page.
  return keys_ % oracle::kPageTokens != 0 ? slot(int32_t(keys_)) : 0;
}

std::vector<int32_t> positions_of(std::span<const int32_t> entries,
                                  const SlotMap& slots) {
  std::vector<int32_t> positions(entries.size());
  std::transform(entries.begin(), entries.end(), positions.begin(),
                 [&](int32_t slot) { return slots.position(slot); });
  return positions;
}

RowListVerdict judge_row_list(const oracle::ListJudge& judge,
                              const SlotMap& slots, const RowList& row) {
  RowListVerdict verdict;
  const std::vector<int32_t> positions = positions_of(row.entries, slots);
  for (size_t i = 0; i < positions.size(); ++i)
    verdict.unwritten += row.entries[i] == row.before[i] &&
                         (i >= judge.base_positions().size() ||
                          positions[i] != judge.base_positions()[i]);
  verdict.list = judge.judge(positions);
  return verdict;
}

void record_list(CheckLog& log, const Where& where, oracle::Contract contract,
                 const RowListVerdict& verdict, const oracle::ListJudge& judge,
                 const SlotMap& slots, const RowList& row) {
  oracle::ListFaults faults;
  if (!verdict.list.holds(contract)) {
    const std::vector<int32_t> positions = positions_of(row.entries, slots);
    const std::vector<int64_t> entries(row.entries.begin(), row.entries.end());
    faults = oracle::list_faults(
        {judge, verdict.list, contract, positions, entries});
  }
  if (verdict.unwritten > 0)
    faults.count = fmt::format("{} of {} entries were not written",
                               verdict.unwritten, row.entries.size());
  record_ladder(log, where, contract, faults, false);
}

}  // namespace exact_topk::harness
