// SPDX-License-Identifier: Apache-2.0
//
// f64 reference of the scores (SPEC section 3, stage 5) of rows over a paged
// cache: s[j] = scale_j * sum_h w_h * relu(q_h . k_j), relu(x) = x > 0 ? x :
// +0.
//
// How it works: keys are taken in blocks of two pages. A block is decoded once
// for all rows whose page tables name the same pages there, multiplied by all
// heads of those rows in one Eigen product, and folded into scores while the
// products lie in the cache; [heads, keys] of a whole row never exists.
// Products of bf16 and e4m3 values are exact in f64, so a value carries the
// rounding of f64 sums only. One thread; ranks share the work by key ranges.
//
// What it does not do: it reads no table entry past a row's last page, and
// never judges. NaN and infinities in queries, keys, weights and scales go
// where the formula sends them (relu of NaN is +0).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "oracle/geometry.h"

namespace exact_topk::oracle {

struct ScoreRow {
  std::span<const std::uint16_t> query;      // [H * 128] bf16, after stage 3
  std::span<const float> weights;            // [H]
  std::span<const std::int32_t> page_table;  // pages of the row, and any more
  std::int64_t keys = 0;                     // n: positions 0 .. n-1
};

// A row whose query is wider than bf16: f32, f16, or fp8 with a scale a head.
// Its products with keys take a rounding more in f32, which `bound` allows for.
struct WideScoreRow {
  std::span<const double> query;             // [H * 128]; at most 49 bits each
  std::span<const float> weights;            // [H]
  std::span<const std::int32_t> page_table;  // as above
  std::int64_t keys = 0;                     // n
};

// The positions to score; whole pages, so that ranks can share a row.
struct KeyRange {
  std::int64_t begin = 0;  // a multiple of 64
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

// Entry i belongs to position range.begin + i.
struct RowScores {
  std::vector<double> value;  // the reference
  std::vector<float> bound;   // how far an f32 score may be from it, absolute
  std::vector<std::uint8_t> zero;  // 1: no term is nonzero, the score must be 0
  double largest = 0.0;  // what errors are measured against, NaN left out:
                         // max |value|, but at least 1/kCancellation of the
                         // largest sum of |terms|
};

// Heads of both signs can cancel until nothing of a score is left but the
// rounding of its terms. Where every score of a row does so (all keys but one
// are zero, say), no f32 kernel knows the row's largest |value| to 1e-4 of
// itself. Ordinary rows, whose largest score keeps more than 1/128 of its
// terms, are not touched.
inline constexpr double kCancellation = 128.0;

// std::invalid_argument where a row's sizes do not fit the geometry, a range
// begins inside a page or a page lies outside the cache.
std::vector<RowScores> scores(std::span<const ScoreRow> rows,
                              std::span<const std::uint8_t> cache,
                              const Geometry& geometry, KeyRange range = {});
std::vector<RowScores> scores(std::span<const WideScoreRow> rows,
                              std::span<const std::uint8_t> cache,
                              const Geometry& geometry, KeyRange range = {});

}  // namespace exact_topk::oracle
