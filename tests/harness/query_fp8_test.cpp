// SPDX-License-Identifier: Apache-2.0
//
// --query fp8 on a cache of two keys and one head, worked out by hand. With a
// largest element of 448 the scale is 1, and codes are the nearest e4m3 values.
#include "harness/query_fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "oracle/formats.h"

namespace exact_topk::harness {
namespace {

constexpr int32_t kTable[] = {1};
constexpr float kWeight[] = {1.0f};

// Key j is 1 in dim j + 1, with the scale 1, so that its score is that element
// of the query.
std::vector<uint8_t> two_keys() {
  std::vector<uint8_t> cache(2 * oracle::kPageBytes, 0x7F);
  uint8_t* page = cache.data() + oracle::kPageBytes;
  std::memset(page, 0, 2 * oracle::kHeadDim);
  page[1] = page[oracle::kHeadDim + 2] = 0x38;
  const float scales[] = {1.0f, 1.0f};
  std::memcpy(page + 64 * oracle::kHeadDim, scales, sizeof scales);
  return cache;
}

std::vector<uint16_t> query_of(float first, float second, float third) {
  std::vector<uint16_t> query(oracle::kHeadDim, 0);
  query[0] = oracle::f32_to_bf16(first);
  query[1] = oracle::f32_to_bf16(second);
  query[2] = oracle::f32_to_bf16(third);
  return query;
}

oracle::Geometry one_head() {
  oracle::Geometry g = oracle::glm53();
  g.heads = 1;
  g.k = 1;
  return g;
}

QueryFp8 compare(const std::vector<uint16_t>& query,
                 const std::vector<double>* other_reference = nullptr) {
  const std::vector<uint8_t> cache = two_keys();
  const oracle::ScoreRow row{query, kWeight, kTable, 2};
  oracle::RowScores reference =
      oracle::scores(std::span(&row, 1), cache, one_head()).front();
  if (other_reference != nullptr) reference.value = *other_reference;
  return compare_query_fp8(row, reference, cache, magnitudes(cache),
                           one_head());
}

TEST(QueryFp8, CodesAreTheNearestAndTheRoundingHalfAnUlp) {
  // 17 lies between 16 and 18 and goes to the even code;
  // 3 * 2^-11 lies between 0 and one quantum, 2^-9, closer to that.
  const QuantisedQuery q = quantise_query(query_of(-448, 17, 0x3p-11f));
  EXPECT_EQ(q.value[0], -448);
  EXPECT_EQ(q.value[1], 16);
  EXPECT_EQ(q.value[2], 0x1p-9);
  EXPECT_EQ(q.value[3], 0);
  EXPECT_EQ(q.rounding[1], 17.0 / 16 * (1 + 0x1p-10));
  EXPECT_EQ(q.rounding[2], 0x1p-10 * (1 + 0x1p-10));
  for (size_t d = 0; d < 3; ++d)
    EXPECT_LE(std::fabs(q.value[d] - (d == 0   ? -448.0
                                      : d == 1 ? 17.0
                                               : 0x3p-11)),
              q.rounding[d]);
}

TEST(QueryFp8, EveryHeadHasItsScaleAndZerosHaveNone) {
  std::vector<uint16_t> query(2 * oracle::kHeadDim, 0);
  query[oracle::kHeadDim + 5] = oracle::f32_to_bf16(3.5f);
  const QuantisedQuery q = quantise_query(query);
  for (size_t i = 0; i < query.size(); ++i)
    EXPECT_EQ(q.value[i], i == oracle::kHeadDim + 5 ? 3.5 : 0) << i;
}

TEST(QueryFp8, ATieThatFp8MakesChangesTheWinnerWithinItsRounding) {
  // 16.5 against 17, both 16 in FP8: the tie goes to position 0. It was 0.5
  // from the threshold, 17, and may have been 16.5 / 16 + 17 / 16.
  const QueryFp8 found = compare(query_of(448, 16.5f, 17));
  EXPECT_EQ(found.rows, 1);
  EXPECT_EQ(found.winners, 1);
  EXPECT_EQ(found.differ, 1);
  EXPECT_EQ(found.outside, 0);
  EXPECT_NEAR(found.furthest, 0.5 / ((16.5 + 17) / 16 * (1 + 0x1p-10)), 1e-6);
}

TEST(QueryFp8, ExactCodesChangeNothing) {
  EXPECT_EQ(compare(query_of(448, 16, 18)), (QueryFp8{1, 1, 0, 0, 0}));
}

TEST(QueryFp8, AWinnerFurtherAwayIsOutside) {
  // References that no rounding explains: 100 is not within 2.1 of 16.
  const std::vector<double> wrong = {16.5, 100};
  const QueryFp8 found = compare(query_of(448, 16.5f, 17), &wrong);
  EXPECT_EQ(found.differ, 1);
  EXPECT_EQ(found.outside, 1);
  EXPECT_GT(found.furthest, 1);
}

TEST(QueryFp8, SumsOfRows) {
  QueryFp8 sum{1, 10, 2, 0, 0.5};
  sum.add({2, 20, 3, 1, 1.5});
  EXPECT_EQ(sum, (QueryFp8{3, 30, 5, 1, 1.5}));
}

}  // namespace
}  // namespace exact_topk::harness
