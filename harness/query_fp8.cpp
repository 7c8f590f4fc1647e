// SPDX-License-Identifier: Apache-2.0
#include "harness/query_fp8.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "oracle/formats.h"
#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

// f64 sums of the two references differ by far less than this of the largest.
constexpr double kSumRounding = 1e-9;

// What marks the k largest, ties to the lowest position, and which is least.
struct Selected {
  std::vector<bool> is;  // [n]
  double threshold = 0;  // the k-th value
};
Selected select(std::span<const double> values, size_t k) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto last = order.begin() + std::ptrdiff_t(k) - 1;
  std::ranges::nth_element(order, last, [&](size_t a, size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  });
  Selected selected{std::vector<bool>(values.size()), values[*last]};
  for (auto p = order.begin(); p <= last; ++p) selected.is[*p] = true;
  return selected;
}

std::vector<double> wide_scores(std::span<const double> query,
                                std::span<const float> weights,
                                const oracle::ScoreRow& row,
                                std::span<const uint8_t> cache,
                                const oracle::Geometry& geometry) {
  const oracle::WideScoreRow wide{query, weights, row.page_table, row.keys};
  return std::move(
      oracle::scores(std::span(&wide, 1), cache, geometry).front().value);
}

}  // namespace

void QueryFp8::add(const QueryFp8& other) {
  rows += other.rows;
  winners += other.winners;
  differ += other.differ;
  outside += other.outside;
  furthest = std::max(furthest, other.furthest);
}

// A code of e4m3fn is at most half an ulp from the quotient v = q / scale: 2^-4
// of |v| where it is normal (three bits of mantissa), 2^-10 below 2^-6. The
// quotient itself is rounded to f32 first, and amax's may pass 448 by that
// much; 2^-10 of the bound is more than both.
QuantisedQuery quantise_query(std::span<const uint16_t> query) {
  constexpr float kMost = oracle::e4m3_max(oracle::Fp8::kE4m3fn);
  QuantisedQuery result;
  for (size_t first = 0; first < query.size(); first += oracle::kHeadDim) {
    const auto head = query.subspan(first, oracle::kHeadDim);
    float amax = 0;
    for (const uint16_t code : head)
      amax = std::max(amax, std::fabs(oracle::bf16_to_f32(code)));
    const float scale = amax / kMost;
    for (const uint16_t code : head) {
      const float q = oracle::bf16_to_f32(code);
      const uint8_t fp8 =
          scale == 0 ? uint8_t{0}
                     : oracle::f32_to_e4m3(q / scale, oracle::Fp8::kE4m3fn);
      result.value.push_back(
          double{oracle::e4m3_to_f32(fp8, oracle::Fp8::kE4m3fn)} * scale);
      result.rounding.push_back(
          std::max(std::fabs(double{q}) * 0x1p-4, double{scale} * 0x1p-10) *
          (1 + 0x1p-10));
    }
  }
  return result;
}

std::vector<uint8_t> magnitudes(std::span<const uint8_t> cache) {
  std::vector<uint8_t> result(cache.begin(), cache.end());
  constexpr size_t kKeys = size_t{oracle::kPageTokens} * oracle::kHeadDim;
  for (size_t page = 0; page < result.size(); page += oracle::kPageBytes)
    for (size_t i = 0; i < kKeys; ++i) result[page + i] &= 0x7F;
  return result;
}

// relu changes by no more than its argument does, so score j of the FP8 query
// is within e_j = scale_j * sum_h |w_h| sum_d rounding_hd |k_jd| of the bf16
// query's; E is the largest of the row. Both k-th largest values, T of bf16 and
// T' of FP8, are then within E of each other. A key that only FP8 selects has
// s' >= T' and so s >= T' - e >= T - E - e; one that only bf16 selects has
// s' <= T', s <= T + E + e. Either lies within E + e of T.
QueryFp8 compare_query_fp8(const oracle::ScoreRow& row,
                           const oracle::RowScores& reference,
                           std::span<const uint8_t> cache,
                           std::span<const uint8_t> magnitude_cache,
                           const oracle::Geometry& geometry) {
  const auto k = size_t(std::min<int64_t>(row.keys, geometry.k));
  if (k == 0) return {};
  const QuantisedQuery query = quantise_query(row.query);
  std::vector<float> weight_magnitudes(row.weights.begin(), row.weights.end());
  for (float& weight : weight_magnitudes) weight = std::fabs(weight);
  const std::vector<double> fp8 =
      wide_scores(query.value, row.weights, row, cache, geometry);
  const std::vector<double> rounding = wide_scores(
      query.rounding, weight_magnitudes, row, magnitude_cache, geometry);

  const Selected by_bf16 = select(reference.value, k), by_fp8 = select(fp8, k);
  const double most =
      *std::ranges::max_element(rounding) + kSumRounding * reference.largest;
  QueryFp8 result{1, int64_t(k)};
  for (size_t j = 0; j < fp8.size(); ++j) {
    if (by_bf16.is[j] == by_fp8.is[j]) continue;
    result.differ += by_bf16.is[j];
    const double distance = std::fabs(reference.value[j] - by_bf16.threshold);
    const double allowed = most + rounding[j];
    result.outside += distance > allowed;
    if (distance > 0)
      result.furthest = std::max(result.furthest, distance / allowed);
  }
  return result;
}

}  // namespace exact_topk::harness
