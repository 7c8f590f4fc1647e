// SPDX-License-Identifier: Apache-2.0
#include "oracle/list_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace exact_topk::oracle {
namespace {

// The entries that should name keys: min(n, k) of them.
std::size_t expected(const NamedList& list) {
  return list.judge.top_k().size();
}

std::string count_fault(const NamedList& list) {
  if (list.verdict.count) return "";
  if (list.positions.size() < expected(list))
    return fmt::format("the list has {} entries, and the row takes {}",
                       list.positions.size(), expected(list));
  const auto past = list.positions.subspan(expected(list));
  const auto bad = std::find_if(past.begin(), past.end(),
                                [](std::int32_t entry) { return entry != -1; });
  const auto index = std::size_t(bad - list.positions.begin());
  return fmt::format(
      "entry {} is {}, past the {} that the row takes, and must be -1; {} such "
      "entries are not",
      index, list.entries[index], expected(list),
      list.verdict.entries_wrong_count);
}

std::string range_fault(const NamedList& list, std::size_t keys) {
  if (list.verdict.range) return "";
  const auto bad = std::find_if(
      list.positions.begin(), list.positions.end(),
      [&](std::int32_t p) { return p < 0 || std::size_t(p) >= keys; });
  const auto index = std::size_t(bad - list.positions.begin());
  return fmt::format(
      "entry {} is {}, which names no key of the row; {} of {} entries are out "
      "of range",
      index, list.entries[index], list.verdict.out_of_range, expected(list));
}

std::string set_fault(const ListVerdict& v) {
  if (v.set) return "";
  return fmt::format(
      "{} keys of the exact top k are missed (positions {}{}), {} others are "
      "listed (positions {}{})",
      v.missed, fmt::join(v.missing, " "),
      std::size_t(v.missed) > v.missing.size() ? " ..." : "", v.extra,
      fmt::join(v.extras, " "),
      std::size_t(v.extra) > v.extras.size() ? " ..." : "");
}

std::string values_fault(const ListVerdict& v) {
  if (v.values) return "";
  return fmt::format(
      "the selected values are not the top k's: {} keys above the k-th and {} "
      "that equal it are missed",
      v.missed - v.missed_ties, v.missed_ties);
}

std::string ties_fault(const ListVerdict& v) {
  if (v.missed_ties == 0) return "";
  return fmt::format(
      "{} missed keys equal the k-th (radix key {:#010x}, {} keys of the row "
      "have it): ties go to the lowest position",
      v.missed_ties, v.threshold, v.ties);
}

std::string order_fault(const NamedList& list) {
  const ListVerdict& v = list.verdict;
  const bool held = list.contract == Contract::kPosition ? v.position
                    : list.contract == Contract::kSorted ? v.sorted
                    : list.contract == Contract::kBase   ? v.base
                                                         : true;
  if (held) return "";
  if (list.contract != Contract::kBase)
    return fmt::format("the list is not in the promised order: {}",
                       to_string(list.contract));
  const auto index = std::size_t(v.first_order_error);
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
  const ListVerdict& v = list.verdict;
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

std::string first_sentence(const ListFaults& faults, Contract contract) {
  const bool set = contract > Contract::kValues;
  const std::string* promised[] = {
      &faults.count, &faults.range, &faults.duplicates,
      // Of the two the set's says more, and values follow from it.
      set ? &faults.set : &faults.values, &faults.order};
  const std::size_t checks = contract == Contract::kValid ? 3
                             : contract > Contract::kSet  ? 5
                                                          : 4;
  for (const std::string* sentence : std::span(promised).first(checks))
    if (!sentence->empty()) return *sentence;
  return "";
}

FaultyEntry first_faulty_entry(const NamedList& list,
                               std::span<const float> scores,
                               ValueRules rules) {
  const ListVerdict& verdict = list.verdict;
  if (verdict.holds(list.contract)) return {};
  const auto key = [&](std::int32_t position) {
    return ranked_key(scores[static_cast<std::size_t>(position)], rules);
  };
  const bool values = list.contract == Contract::kValues && !verdict.values;
  const bool set = list.contract > Contract::kValues && !verdict.set;
  // A tie that stands for another is right by its value; only where every
  // extra is one is it what is wrong with the values.
  const auto below = [&](std::int32_t p) { return key(p) < verdict.threshold; };
  const bool lower =
      values && std::any_of(list.positions.begin(), list.positions.end(),
                            [&](std::int32_t p) {
                              return p >= 0 && std::size_t(p) < scores.size() &&
                                     below(p);
                            });
  std::vector<bool> seen(scores.size(), false);
  std::int32_t before = -1;
  for (std::size_t i = 0; i < list.positions.size(); ++i) {
    const std::int32_t p = list.positions[i];
    const bool names_key = p >= 0 && std::size_t(p) < scores.size();
    const FaultyEntry here{static_cast<std::int64_t>(i), names_key ? p : -1};
    if (i >= expected(list)) {
      if (p != -1) return here;
      continue;
    }
    if (!names_key || seen[std::size_t(p)]) return here;
    seen[std::size_t(p)] = true;
    if (set || values) {
      const std::vector<std::int32_t>& top = list.judge.top_k();
      if (!std::binary_search(top.begin(), top.end(), p) &&
          (!lower || below(p)))
        return here;
    }
    const bool breaks =
        list.contract == Contract::kPosition ? p < before
        : list.contract == Contract::kSorted
            ? before >= 0 && (key(before) < key(p) ||
                              (key(before) == key(p) && p < before))
        : list.contract == Contract::kBase ? p != list.judge.base_positions()[i]
                                           : false;
    if (breaks) return here;
    before = p;
  }
  return {static_cast<std::int64_t>(list.positions.size()), -1};
}

}  // namespace exact_topk::oracle
