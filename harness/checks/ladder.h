// SPDX-License-Identifier: Apache-2.0
//
// The verdicts of a list on the contract ladder (SPEC section 11) as checks:
// count, range, duplicates, values, set, ties and order, each on its own.
//
// A check whose level the contract promises is recorded with what is wrong; one
// that it does not promise is untested. The levels that held all the same are
// kept by Levels (harness/levels.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/checks/check_log.h"
#include "oracle/contract.h"

namespace exact_topk::harness {

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
  const oracle::ListJudge& judge;      // of the row
  const oracle::ListVerdict& verdict;  // of the list
  oracle::Contract contract{};         // what was promised
  std::span<const int32_t> positions;  // what was judged
  std::span<const int64_t> entries;    // the same as the kernel wrote them
};

ListFaults list_faults(const NamedList& list);

// `values` is a check of its own where the contract is values alone, and of all
// contracts above it with `values_too`: there it follows from set.
void record_ladder(CheckLog& log, const Where& where, oracle::Contract contract,
                   const ListFaults& faults, bool values_too);

}  // namespace exact_topk::harness
