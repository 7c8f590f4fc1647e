// SPDX-License-Identifier: Apache-2.0
//
// Shrinking with selectors whose faults have a smallest row that is known.
#include "harness/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "oracle/select.h"

namespace exact_topk::harness {
namespace {

// 100 scores, none twice, in no order: 37 and 101 share no factor.
std::vector<float> hundred() {
  std::vector<float> scores;
  for (int p = 0; p < 100; ++p) scores.push_back(float((p + 1) * 37 % 101));
  return scores;
}

std::vector<int32_t> right(std::span<const float> scores, int k) {
  return oracle::exact_top_k(scores, k);
}

// Sees only the first `room` keys of a row.
RowSelector with_room(size_t room) {
  return [room](std::span<const float> scores, int k) {
    std::vector<int32_t> list =
        right(scores.first(std::min(room, scores.size())), k);
    list.resize(std::min(scores.size(), size_t(k)), 0);
    return list;
  };
}

constexpr ShrinkRules kSet{oracle::Contract::kSet, {}, 5000};

TEST(Shrink, ADroppedKeyNeedsOneMoreKeyThanTheBufferHolds) {
  const SmallRow small = shrink_row(hundred(), 40, kSet, with_room(64));
  // 64 equal keys and a better one behind them, of which one is selected.
  ASSERT_EQ(small.scores.size(), 65u);
  EXPECT_EQ(small.k, 1);
  EXPECT_EQ(small.distinct, 2);
  EXPECT_EQ(
      std::count(small.scores.begin(), small.scores.end(), small.scores[0]),
      64);
  EXPECT_GT(small.scores[64], small.scores[0]);
  EXPECT_EQ(small.list, (std::vector<int32_t>{0}));
  EXPECT_LE(small.calls, 5000);
}

TEST(Shrink, ARowThatPassesIsLeftAlone) {
  const SmallRow small = shrink_row(hundred(), 40, kSet, right);
  EXPECT_TRUE(small.list.empty());
  EXPECT_EQ(small.calls, 1);
}

TEST(Shrink, CallsAreBoundedAndTheRowStillFails) {
  ShrinkRules few = kSet;
  few.most_calls = 20;
  const RowSelector selector = with_room(64);
  const SmallRow small = shrink_row(hundred(), 40, few, selector);
  EXPECT_EQ(small.calls, 20);
  ASSERT_FALSE(small.list.empty());
  EXPECT_EQ(small.list, selector(small.scores, small.k));
  EXPECT_FALSE(oracle::judge_list(small.list, small.scores, small.k)
                   .holds(oracle::Contract::kSet));
}

TEST(Shrink, WhatFailsIsTheContract) {
  // Backwards: a set, but not in the order of positions.
  const RowSelector backwards = [](std::span<const float> scores, int k) {
    std::vector<int32_t> list = right(scores, k);
    std::reverse(list.begin(), list.end());
    return list;
  };
  EXPECT_TRUE(shrink_row(hundred(), 40, kSet, backwards).list.empty());
  const SmallRow small = shrink_row(
      hundred(), 40, {oracle::Contract::kPosition, {}, 5000}, backwards);
  EXPECT_EQ(small.scores.size(), 2u);
  EXPECT_EQ(small.list, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(small.distinct, 1);
}

TEST(Shrink, ACallThatFailsIsNoFailureOfTheList) {
  const RowSelector refuses_short = [](std::span<const float> scores, int k) {
    return scores.size() < 80 ? std::vector<int32_t>()
                              : with_room(64)(scores, k);
  };
  EXPECT_EQ(shrink_row(hundred(), 40, kSet, refuses_short).scores.size(), 80u);
}

}  // namespace
}  // namespace exact_topk::harness
