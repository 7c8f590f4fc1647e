// SPDX-License-Identifier: Apache-2.0
//
// rowsets.h - which rows a step has: SPEC section 5, "Row sets".
//
// A row set places W rows at step 0 for a position P; plan.h turns that into
// pages, slots and later steps. A new one is a function and an entry of the
// table in rowsets.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace exact_topk::cases {

struct PlacedRow {
  int request = -1;       // -1: a pad row
  int64_t position = -1;  // on step 0; negative: a pad row at that step
  int64_t shared_pages =
      0;  // the row's request takes that many first pages from request 0
};

struct RowSet {
  std::string_view name;         // in --rowset and in case names
  std::string_view description;  // one line
  std::vector<PlacedRow> (*rows)(int width, int64_t position);
};

std::span<const RowSet> row_sets();

// Throws std::invalid_argument for an unknown name.
const RowSet& row_set(std::string_view name);

}  // namespace exact_topk::cases
