// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a judged list, in words: a sentence for each of count,
// range, duplicates, values, set, ties and order, with the entries as the
// kernel wrote them; and the first entry that breaks a contract, for those who
// want to look at it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "oracle/contract.h"

namespace exact_topk::oracle {

// What is wrong, a sentence a check; empty where it held.
struct ListFaults {
  std::string count;
  std::string range;
  std::string duplicates;
  std::string values;
  std::string set;
  std::string ties;
  std::string order;  // of the contract's own order
};

// A judged list, as sentences name it.
struct NamedList {
  const ListJudge& judge;                   // of the row
  const ListVerdict& verdict;               // of the list
  Contract contract{};                      // what was promised
  std::span<const std::int32_t> positions;  // what was judged
  std::span<const std::int64_t> entries;    // the same as the kernel wrote them
};

ListFaults list_faults(const NamedList& list);

// The sentence of the first check that the contract promises and that failed;
// empty where the contract holds.
std::string first_sentence(const ListFaults& faults, Contract contract);

// The first entry that breaks the contract.
struct FaultyEntry {
  std::int64_t index = -1;     // in the list, its length where the list is too
                               // short; -1: the contract holds
  std::int32_t position = -1;  // of the key that the entry names; -1: none
};

// `scores` and `rules` are those that the judge was made with.
FaultyEntry first_faulty_entry(const NamedList& list,
                               std::span<const float> scores, ValueRules rules);

}  // namespace exact_topk::oracle
