// SPDX-License-Identifier: Apache-2.0
//
// Calls of xtk_select on score rows in host memory: of cases that only select,
// and of peers on the scores of a launch. It holds the rows, shows a candidate
// copies that it must leave alone, and holds the list that it writes; what the
// list must hold is for others to judge. A list counts as it was when the call
// returned.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases/families.h"
#include "harness/checks/list.h"
#include "harness/guarded_buffer.h"
#include "harness/open_candidate.h"
#include "harness/timing.h"

namespace exact_topk::harness {

// Page tables of the rows: without any, entries are positions.
struct RowPages {
  std::vector<int32_t> pages;  // [R][width]
  int width = 0;
};

class Selection {
 public:
  Selection(cases::SelectRows rows, RowPages tables, int k);

  size_t rows() const { return rows_.lengths.size(); }
  int32_t length(size_t r) const { return rows_.lengths[r]; }
  std::span<const float> scores(size_t r) const;
  std::span<const int32_t> table(size_t r) const;
  int64_t list_entries() const { return rows_.list_entries; }

  // Selects into a list that `filling` has filled.
  void call(Candidate& candidate, const std::string& arm,
            const Filling& filling);
  // Of the last call: what lay in the row's min(n, k) entries when it returned,
  // and what lay there before.
  std::span<const int32_t> list(size_t r) const { return returned_[r]; }
  std::vector<int32_t> before(size_t r) const;
  // What is wrong outside the entries of the rows, and with the inputs, after
  // the last call; else empty.
  std::string outside_fault() const { return list_.fault(own_); }
  std::string input_fault() const;
  // The first row whose entries are no longer as the last call returned them.
  std::optional<size_t> changed_row() const;

  // Turns every row's scores round: the next call shows other scores at the
  // same addresses.
  void turn_rows();

  // What any selection must do at least: read the scores.
  Work work() const;

 private:
  int64_t entries(size_t r) const;
  // What lies in the row's entries now.
  std::span<const int32_t> held(size_t r) const;

  cases::SelectRows rows_;
  RowPages tables_;
  // The copies that a candidate is shown, at the same addresses in every call.
  cases::SelectRows shown_rows_;
  std::vector<int32_t> shown_pages_;
  int k_;
  GuardedBuffer<int32_t> list_;
  std::vector<std::pair<int64_t, int64_t>> own_;  // entries of the rows
  std::vector<std::vector<int32_t>> returned_;    // [R], by the last call
};

}  // namespace exact_topk::harness
