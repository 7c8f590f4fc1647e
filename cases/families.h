// SPDX-License-Identifier: Apache-2.0
//
// families.h - score rows for selecting alone: the selection bugs seen in the
// field, as data.
//
// `--stage select --rows-from FAMILY --pos P --rows W` makes W rows. Row 0 has
// n = P + 1 scores, row 1 n - 1, then n - n/4, and at most k + 1, k, k - 1, 1
// and 0. Row r of W begins at a residue of 1 + r + W mod 4, so that four rows
// see every alignment, and four widths every one of row 0; what lies before,
// between and after the rows is bait: +inf, 3e38 and NaN, any of which would
// win if a selector looked outside its window.
//
// Where --pos is not given, each family has a length of its own at which its
// property holds for rows 0 and 1; a case too short for its family is SKIPPED.
// A new family is a function and an entry of the table in families.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "cases/generator.h"

namespace exact_topk::cases {

// A row's random numbers.
struct Draw {
  Stream values;  // what the scores are
  Stream places;  // where they stand
};

struct Family {
  std::string name;         // in --rows-from and in case names
  std::string description;  // one line: what the rows are, and the public bug
                            // behind them
  int64_t min_keys = 1;     // shortest row that has the property, at k = 2048
  int64_t own_keys = 0;     // n where --pos is not given
  int64_t parameter = 0;  // what `make` is told besides: a count, or a variant
  // A row shorter than min_keys is made as well, without the property.
  std::vector<float> (*make)(const Draw& draw, int64_t n, int k,
                             int64_t parameter) = nullptr;
};

std::span<const Family> families();
std::vector<std::string> family_names();

// Throws std::invalid_argument for an unknown name.
const Family& family(std::string_view name);

struct SelectRows {
  std::vector<float> scores;       // rows and bait
  std::vector<int64_t> row_start;  // [R]
  std::vector<int32_t> lengths;    // [R]: n of each row
  std::vector<int32_t> indptr;     // [R]: as in Step
  int64_t list_entries = 0;        // as in Plan
};

SelectRows select_rows(const Case& c, uint64_t seed);

// The lengths alone.
std::vector<int32_t> select_lengths(const Case& c);

}  // namespace exact_topk::cases
