// SPDX-License-Identifier: Apache-2.0
//
// A row's list, entry by entry, against the base order of the launch's own
// scores (SPEC section 6, check 2). Entries are slots: SlotMap takes them back
// to positions, and oracle::ListJudge gives the separate verdicts.
//
// count: an entry that still holds the pattern written before the launch was
// not written (unless that is what belongs there). range, duplicates, set, ties
// and order are the judge's. What a weaker contract (SPEC section 11) does not
// promise is not held against a candidate, but judged all the same: the
// negative controls need the verdict.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/checks/check_log.h"
#include "oracle/contract.h"

namespace exact_topk::harness {

// Slots of one row, back to positions.
class SlotMap {
 public:
  // `table`: the row's page table; without one a slot is a position.
  SlotMap(std::span<const int32_t> table, int64_t keys);
  // -1 for a slot that holds no key of the row.
  int32_t position(int32_t slot) const;
  int32_t slot(int32_t position) const;
  bool identity() const { return table_.empty(); }  // slots are positions
  // A slot that holds no key of the row, as close to one as there is.
  int32_t outside() const;

 private:
  std::span<const int32_t> table_;  // empty: slots are positions
  int64_t keys_;                    // n
  std::vector<int32_t> page_;       // page id to index in the table, or -1
};

struct RowList {
  std::span<const int32_t> entries;  // slots, min(n, k) of them
  std::span<const int32_t> before;   // what the entries held before the launch
};

struct RowListVerdict {
  oracle::ListVerdict list;
  int64_t unwritten = 0;  // entries that hold what was there before
};

// The positions of slots; -1 where a slot holds no key of the row.
std::vector<int32_t> positions_of(std::span<const int32_t> entries,
                                  const SlotMap& slots);

RowListVerdict judge_row_list(const oracle::ListJudge& judge,
                              const SlotMap& slots, const RowList& row);

// Records count, range, duplicates, set, ties and order (and values for a
// contract that promises them alone), as far as the contract promises them.
void record_list(CheckLog& log, const Where& where, oracle::Contract contract,
                 const RowListVerdict& verdict, const oracle::ListJudge& judge,
                 const SlotMap& slots, const RowList& row);

}  // namespace exact_topk::harness
