// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/ladder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace exact_topk::harness {
namespace {

using oracle::Contract;

// The entries that should name keys: min(n, k) of them.
size_t expected(const NamedList& list) { return list.judge.top_k().size(); }

std::string count_fault(const NamedList& list) {
  if (list.verdict.count) return "";
  if (list.positions.size() < expected(list))
    return fmt::format("the list has {} entries, and the row takes {}",
                       list.positions.size(), expected(list));
  const auto past = list.positions.subspan(expected(list));
  const auto bad = std::find_if(past.begin(), past.end(),
                                [](int32_t entry) { return entry != -1; });
  const auto index = size_t(bad - list.positions.begin());
  return fmt::format(
      "entry {} is {}, past the {} that the row takes, and must be -1; {} such "
      "entries are not",
      index, list.entries[index], expected(list),
      list.verdict.entries_wrong_count);
}

std::string range_fault(const NamedList& list, size_t keys) {
  if (list.verdict.range) return "";
  const auto bad =
      std::find_if(list.positions.begin(), list.positions.end(),
                   [&](int32_t p) { return p < 0 || size_t(p) >= keys; });
  const auto index = size_t(bad - list.positions.begin());
  return fmt::format(
      "entry {} is {}, which names no key of the row; {} of {} entries are out "
      "of range",
      index, list.entries[index], list.verdict.out_of_range, expected(list));
}

std::string set_fault(const oracle::ListVerdict& v) {
  if (v.set) return "";
  return fmt::format(
      "{} keys of the exact top k are missed (positions {}{}), {} others are "
      "listed (positions {}{})",
      v.missed, fmt::join(v.missing, " "),
      size_t(v.missed) > v.missing.size() ? " ..." : "", v.extra,
      fmt::join(v.extras, " "),
      size_t(v.extra) > v.extras.size() ? " ..." : "");
}

std::string values_fault(const oracle::ListVerdict& v) {
  if (v.values) return "";
  return fmt::format(
      "the selected values are not the top k's: {} keys above the k-th are "
      "missed",
      v.missed - v.missed_ties);
}

std::string ties_fault(const oracle::ListVerdict& v) {
  if (v.missed_ties == 0) return "";
  return fmt::format(
      "{} missed keys equal the k-th (radix key {:#010x}, {} keys of the row "
      "have it): ties go to the lowest position",
      v.missed_ties, v.threshold, v.ties);
}

std::string order_fault(const NamedList& list) {
  const oracle::ListVerdict& v = list.verdict;
  const bool held = list.contract == Contract::kPosition ? v.position
                    : list.contract == Contract::kSorted ? v.sorted
                    : list.contract == Contract::kBase   ? v.base
                                                         : true;
  if (held) return "";
  if (list.contract != Contract::kBase)
    return fmt::format("the list is not in the promised order: {}",
                       oracle::to_string(list.contract));
  const auto index = size_t(v.first_order_error);
  if (index >= list.positions.size())
    return fmt::format("{} entries differ from the base order", v.order_errors);
  return fmt::format(
      "entry {} is {} (position {}), the base order ({} bits) has position {}; "
      "{} of {} entries differ",
      index, list.entries[index], list.positions[index], v.bits,
      list.judge.base_positions()[index], v.order_errors, expected(list));
}

}  // namespace

ListFaults list_faults(const NamedList& list) {
  const oracle::ListVerdict& v = list.verdict;
  ListFaults faults;
  faults.count = count_fault(list);
  faults.range = range_fault(list, list.judge.keys());
  if (!v.duplicates)
    faults.duplicates =
        fmt::format("{} entries repeat a key", v.duplicate_entries);
  faults.values = values_fault(v);
  faults.set = set_fault(v);
  faults.ties = ties_fault(v);
  faults.order = order_fault(list);
  return faults;
}

void record_ladder(CheckLog& log, const Where& where, Contract contract,
                   const ListFaults& faults, bool values_too) {
  const auto promised = [&](const char* check, bool yes,
                            const std::string& fault) {
    if (yes)
      log.record(check, where, fault);
    else
      log.untested(check, fmt::format("the contract is only {}",
                                      oracle::to_string(contract)));
  };
  const bool values = contract != Contract::kValid;
  const bool set = values && contract != Contract::kValues;
  log.record("count", where, faults.count);
  log.record("range", where, faults.range);
  log.record("duplicates", where, faults.duplicates);
  if (values_too || contract == Contract::kValues)
    promised("values", values, faults.values);
  promised("set", set, faults.set);
  promised("ties", set, faults.ties);
  promised("order", set && contract != Contract::kSet, faults.order);
}

}  // namespace exact_topk::harness
