// SPDX-License-Identifier: Apache-2.0
//
// --query fp8: what selecting by an FP8 query would change. Serving engines
// quantise the index query, e4m3fn with a scale a row and head of amax / 448 in
// f32; the indexer judged here keeps it in bf16. The same keys are scored with
// both in f64, and the winners compared (what engines call topk_own).
//
// It judges no candidate: it says how many winners of a case hang on the
// query's format. That each of them lies as close to the threshold as FP8
// rounding can move a score is checked, since the opposite would mean that one
// of the two references is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/geometry.h"
#include "oracle/scores.h"

namespace exact_topk::harness {

struct QueryFp8 {
  int64_t rows = 0;     // compared
  int64_t winners = 0;  // keys selected of them
  int64_t differ = 0;   // of those, not selected by the FP8 query
  int64_t outside = 0;  // keys that changed sides outside the rounding bound
  double furthest = 0;  // largest distance from the threshold of one that
                        // changed sides, over the bound

  void add(const QueryFp8& other);  // of other rows
  bool operator==(const QueryFp8&) const = default;
};

// A query of one row, quantised.
struct QuantisedQuery {
  std::vector<double> value;     // [H * 128]: codes times scales
  std::vector<double> rounding;  // [H * 128]: how far that may be from bf16
};
QuantisedQuery quantise_query(std::span<const uint16_t> query);

// The cache with every key's sign bits cleared: of the rounding's sums.
std::vector<uint8_t> magnitudes(std::span<const uint8_t> cache);

// `reference`: the row's scores by its bf16 query, against `cache`.
QueryFp8 compare_query_fp8(const oracle::ScoreRow& row,
                           const oracle::RowScores& reference,
                           std::span<const uint8_t> cache,
                           std::span<const uint8_t> magnitude_cache,
                           const oracle::Geometry& geometry);

}  // namespace exact_topk::harness
