// SPDX-License-Identifier: Apache-2.0
//
// Negative controls are caught by the checks, and by nothing where a check is
// replaced by one that does not look.
#include "harness/controls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace exact_topk::harness {
namespace {

using ::testing::HasSubstr;

const std::vector<float> kScores{3, 1, 2, 2, 0, 2};
constexpr int kK = 3;

ControlTally list_controls(const Judges& judges, std::span<const float> scores,
                           std::vector<int32_t> entries) {
  const oracle::ListJudge judge(scores, kK);
  const std::vector<int32_t> before(entries.size(), -9);
  ControlTally tally;
  control_list(tally, {0, 0, 0}, judges, oracle::Contract::kBase, judge,
               SlotMap({}, int64_t(scores.size())), {entries, before}, scores);
  return tally;
}

oracle::RowScores reference(std::vector<double> values) {
  oracle::RowScores row;
  row.bound.assign(values.size(), 1e-6f);
  for (const double value : values) {
    row.zero.push_back(value == 0);
    row.largest = std::max(row.largest, std::abs(value));
  }
  row.value = std::move(values);
  return row;
}

ControlTally score_controls(const Judges& judges,
                            const std::vector<double>& values, double bound) {
  const std::vector<float> scores(values.begin(), values.end());
  ControlTally tally;
  control_scores(tally, {0, 0, 0}, judges, scores, reference(values), bound);
  return tally;
}

TEST(ListControls, AreCaughtInLongAndShortRows) {
  // n > k: with a tie across the cut the replacement has the same score.
  const ControlTally long_row = list_controls({}, kScores, {0, 2, 3});
  EXPECT_EQ(long_row.run, 2);
  EXPECT_EQ(long_row.caught, 2) << long_row.escaped;
  const ControlTally short_row =
      list_controls({}, std::span(kScores).first(3), {0, 1, 2});
  EXPECT_EQ(short_row.run, 2);
  EXPECT_EQ(short_row.caught, 2) << short_row.escaped;
  // One entry cannot be swapped, none cannot be replaced.
  EXPECT_EQ(list_controls({}, std::span(kScores).first(1), {0}).run, 1);
  EXPECT_EQ(list_controls({}, std::span(kScores).first(0), {}).run, 0);
}

// A list judge that overlooks one kind of fault.
Judges blind(void (*overlook)(oracle::ListVerdict&)) {
  Judges judges;
  judges.list = [overlook](const oracle::ListJudge& judge, const SlotMap& slots,
                           const RowList& row) {
    RowListVerdict verdict = judge_row_list(judge, slots, row);
    overlook(verdict.list);
    return verdict;
  };
  return judges;
}

TEST(ListControls, EscapeACheckThatDoesNotLook) {
  const ControlTally set = list_controls(
      blind([](oracle::ListVerdict& v) { v.set = true; }), kScores, {0, 2, 3});
  EXPECT_EQ(set.run - set.caught, 1);
  EXPECT_THAT(set.escaped,
              HasSubstr("'replaced' was not caught by the check set"));

  const ControlTally range =
      list_controls(blind([](oracle::ListVerdict& v) { v.range = true; }),
                    std::span(kScores).first(3), {0, 1, 2});
  EXPECT_EQ(range.run - range.caught, 1);
  EXPECT_THAT(range.escaped,
              HasSubstr("'replaced' was not caught by the check range"));

  const ControlTally order = list_controls(
      blind([](oracle::ListVerdict& v) { v.base = true; }), kScores, {0, 2, 3});
  EXPECT_EQ(order.run - order.caught, 1);
  EXPECT_THAT(order.escaped,
              HasSubstr("'swapped' was not caught by the check order"));
}

TEST(ScoreControls, AreCaughtAtEveryBound) {
  for (const double bound : {0.0, 1e-12, 1e-4, 0.49})
    for (const std::vector<double>& values :
         {std::vector<double>{1, -2, 0.5, 3},
          {0, 0, 0},
          {1e-30, 2e-30},
          {7},
          {4, 0, -9}}) {
      const ControlTally tally = score_controls({}, values, bound);
      EXPECT_EQ(tally.run, 2);
      EXPECT_EQ(tally.caught, 2) << tally.escaped << " at bound " << bound;
    }
}

TEST(ScoreControls, EscapeAJudgeThatDoesNotLook) {
  Judges judges;
  judges.scores = [](auto, const auto&, double) {
    return oracle::ScoreVerdict{};
  };
  const ControlTally tally = score_controls(judges, {1, -2, 0.5, 3}, 1e-4);
  EXPECT_EQ(tally.run, 2);
  EXPECT_EQ(tally.caught, 0);
  EXPECT_THAT(tally.escaped,
              HasSubstr("'flipped' was not caught by the check scores"));
}

TEST(ScoreControls, TellALooserBoundFromTheOneAsked) {
  // A judge with four times the bound lets 2 * bound * largest pass, not the
  // flipped exponent.
  Judges judges;
  judges.scores = [](auto scores, const auto& row, double bound) {
    return judge_scores(scores, row, 4 * bound);
  };
  const ControlTally tally = score_controls(judges, {1, -2, 0.5, 3}, 1e-4);
  EXPECT_EQ(tally.caught, 1);
  EXPECT_THAT(tally.escaped, HasSubstr("'raised'"));
}

}  // namespace
}  // namespace exact_topk::harness
