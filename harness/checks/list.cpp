// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

RowListVerdict judge_row_list(const oracle::ListJudge& judge,
                              const SlotMap& slots, const RowList& row) {
  RowListVerdict verdict;
  std::vector<int32_t> positions(row.entries.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = slots.position(row.entries[i]);
    verdict.unwritten += row.entries[i] == row.before[i] &&
                         (i >= judge.base_positions().size() ||
                          positions[i] != judge.base_positions()[i]);
  }
  verdict.list = judge.judge(positions);
  return verdict;
}

namespace {

std::string range_fault(const oracle::ListVerdict& list, const SlotMap& slots,
                        const RowList& row) {
  if (list.range) return "";
  const auto bad =
      std::find_if(row.entries.begin(), row.entries.end(),
                   [&](int32_t slot) { return slots.position(slot) < 0; });
  return fmt::format(
      "entry {} is slot {}, which holds no key of the row; {} "
      "of {} entries are out of range",
      bad - row.entries.begin(), *bad, list.out_of_range, row.entries.size());
}

std::string set_fault(const oracle::ListVerdict& list) {
  if (list.set) return "";
  return fmt::format(
      "{} keys of the exact top k are missed (positions {}{}), {} others are "
      "listed (positions {}{})",
      list.missed, fmt::join(list.missing, " "),
      size_t(list.missed) > list.missing.size() ? " ..." : "", list.extra,
      fmt::join(list.extras, " "),
      size_t(list.extra) > list.extras.size() ? " ..." : "");
}

std::string ties_fault(const oracle::ListVerdict& list) {
  if (list.missed_ties == 0) return "";
  return fmt::format(
      "{} missed keys equal the k-th (radix key {:#010x}, {} keys of the row "
      "have it): ties go to the lowest position",
      list.missed_ties, list.threshold, list.ties);
}

std::string order_fault(oracle::Contract contract,
                        const oracle::ListVerdict& list,
                        const oracle::ListJudge& judge, const SlotMap& slots,
                        const RowList& row) {
  if (list.holds(contract)) return "";
  if (contract != oracle::Contract::kBase)
    return fmt::format("the list is not in the promised order: {}",
                       oracle::to_string(contract));
  const auto i = size_t(list.first_order_error);
  if (i >= row.entries.size() || i >= judge.base_positions().size())
    return fmt::format("{} entries differ from the base order",
                       list.order_errors);
  const int32_t expected = judge.base_positions()[i];
  return fmt::format(
      "entry {} is slot {} (position {}), the base order ({} bits) has slot {} "
      "(position {}); {} of {} entries differ",
      i, row.entries[i], slots.position(row.entries[i]), list.bits,
      slots.slot(expected), expected, list.order_errors, row.entries.size());
}

}  // namespace

void record_list(CheckLog& log, const Where& where, oracle::Contract contract,
                 const RowListVerdict& verdict, const oracle::ListJudge& judge,
                 const SlotMap& slots, const RowList& row) {
  using oracle::Contract;
  const oracle::ListVerdict& list = verdict.list;
  log.record("count", where,
             verdict.unwritten == 0
                 ? ""
                 : fmt::format("{} of {} entries were not written",
                               verdict.unwritten, row.entries.size()));
  log.record("range", where, range_fault(list, slots, row));
  log.record("duplicates", where,
             list.duplicates ? ""
                             : fmt::format("{} entries repeat a key",
                                           list.duplicate_entries));
  const auto promised = [&](const char* check, bool yes, auto fault) {
    if (yes)
      log.record(check, where, fault());
    else
      log.untested(check, fmt::format("the contract is only {}",
                                      oracle::to_string(contract)));
  };
  if (contract == Contract::kValues)
    log.record("values", where,
               list.values ? "" : "the selected values are not the top k's");
  const bool set =
      contract != Contract::kValid && contract != Contract::kValues;
  promised("set", set, [&] { return set_fault(list); });
  promised("ties", set, [&] { return ties_fault(list); });
  promised("order", set && contract != Contract::kSet,
           [&] { return order_fault(contract, list, judge, slots, row); });
}

}  // namespace exact_topk::harness
