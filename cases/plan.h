// SPDX-License-Identifier: Apache-2.0
//
// plan.h - where everything of a case lies: pages, page tables, positions,
// slots, list offsets.
//
// Page 0 is the pad page. The other page ids are dealt to requests from a
// seeded permutation, with some left unused. A request holds pages for its
// positions over all steps; in row set `mixed` some first pages belong to
// request 0 as well, always full ones that no step writes. Step t adds t times
// the request's rows to every position.
//
// There is one page-table row per step row. Entries past a row's last page name
// live pages of other requests (with a single request: other live pages of its
// own), as a stale table would. A pad row's table row names page 0.
//
// A list buffer gives each row room for k entries, in a seeded order that is
// not row order, with guard entries before, between and after.
//
// A plan depends on the case and the seed alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/case.h"

namespace exact_topk::cases {

inline constexpr int kVocabulary = 512;  // rows of the embedding table

struct Row {
  bool live = false;      // false: a pad row
  int request = -1;       // -1: a pad row
  int64_t position = -1;  // p, the row sees keys 0..p; -1: a pad row
  int64_t slot = -1;      // where the row's own key goes; -1: a pad row
  int64_t keys() const { return position + 1; }  // n
};

struct Step {
  std::vector<Row> rows;            // [R]
  std::vector<int32_t> page_table;  // [R][table_width]
  std::vector<int32_t>
      indptr;  // [R]: offset of each row's entries in the list buffer
};

// What a page holds before step 0; bit i speaks of the slot at offset i.
struct PageState {
  uint64_t cached = 0;  // the slot holds a key; the others are unowned memory
  uint64_t recent =
      0;  // the slot is among the last 4,096 cached keys of some row
};

struct Plan {
  int pages = 0;             // of each layer's cache, page 0 included
  int table_width = 0;       // columns of the page table
  int requests = 0;          // requests with rows
  int64_t max_keys = 0;      // largest n over all steps
  int64_t score_stride = 0;  // f32 from one row of scores to the next: a
                             // multiple of 4, at least 64 past max_keys
  int64_t list_entries = 0;  // i32 of the list buffer, guard entries included
  int64_t rope_positions =
      0;                    // rows of the rope table: the largest position + 1
  std::vector<Step> steps;  // one a step
  std::vector<PageState> page_states;  // [pages]
  std::string skipped;                 // why the case cannot run; empty: it can
  uint64_t bytes = 0;  // memory of inputs, scores and list, one copy of each
};

// The plan of a case; of selecting alone only skipped, bytes, max_keys and
// list_entries are set (families.h has the rest). Throws std::invalid_argument,
// naming --pos, where a row would see more than 2^20 + 64 keys.
Plan make_plan(const Case& c, uint64_t seed);

// Slots that hold a key before the first step, ascending.
std::vector<int64_t> cached_slots(const Plan& plan);

// Throws as make_plan does.
void check_positions(const Case& c);

}  // namespace exact_topk::cases
