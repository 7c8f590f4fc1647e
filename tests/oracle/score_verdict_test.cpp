// SPDX-License-Identifier: Apache-2.0
#include "oracle/score_verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace exact_topk::oracle {
namespace {

// Four scores; the largest |reference| is 8 and the third has no nonzero term.
RowScores reference() {
  return {
      {1.0, -8.0, 0.0, 2.0}, {1e-6f, 1e-6f, 0.0f, 1e-6f}, {0, 0, 1, 0}, 8.0};
}
constexpr double kBound = 1.0 / 1024;  // allows 8/1024 = 2^-7

std::int64_t faults(std::vector<float> scores) {
  return judge_scores(scores, reference(), kBound).faults;
}

TEST(Scores, HoldUpToTheBoundAndNotBeyond) {
  EXPECT_EQ(faults({1.0f, -8.0f, 0.0f, 2.0f}), 0);
  EXPECT_EQ(faults({1.0f + 0x1p-7f, -8.0f, 0.0f, 2.0f - 0x1p-7f}), 0);
  EXPECT_EQ(faults({std::nextafter(1.0f + 0x1p-7f, 2.0f), -8.0f, 0.0f, 2.0f}),
            1);
  EXPECT_EQ(faults({1.0f, -8.0f, 0.0f, std::nextafter(2.0f - 0x1p-7f, 0.0f)}),
            1);
}

TEST(Scores, OfNoNonzeroTermAreExactlyZero) {
  EXPECT_EQ(faults({1.0f, -8.0f, -0.0f, 2.0f}), 0);
  EXPECT_EQ(
      faults({1.0f, -8.0f, std::numeric_limits<float>::denorm_min(), 2.0f}), 1);
}

TEST(Scores, AreNeverNanOrInfinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, -kNan, kInf, -kInf}) {
    const std::vector<float> scores{1.0f, bad, 0.0f, 2.0f};
    const ScoreVerdict verdict = judge_scores(scores, reference(), 0.49);
    EXPECT_EQ(verdict.faults, 1);
    EXPECT_EQ(verdict.first, 1);
    EXPECT_TRUE(std::isinf(verdict.max_error));
    EXPECT_NE(scores_fault(verdict, scores, reference(), 0.49), "");
  }
}

TEST(Scores, ReportTheErrorOverTheLargestReferenceAndOverTheRoundingBound) {
  const std::vector<float> scores{1.0f, -8.0f, 0.0f, 2.0f + 0x1p-10f};
  const ScoreVerdict verdict = judge_scores(scores, reference(), kBound);
  EXPECT_EQ(verdict.faults, 0);
  EXPECT_DOUBLE_EQ(verdict.max_error, 0x1p-13);
  EXPECT_DOUBLE_EQ(verdict.max_bound_ratio, 0x1p-10 / double{1e-6f});
  EXPECT_EQ(verdict.worst_rounding, 3);
  EXPECT_NE(rounding_fault(verdict, scores, reference()), "");
}

TEST(Scores, OfOurOwnMayBeSixteenRoundingBoundsOff) {
  RowScores exact{{1.0}, {0x1p-20f}, {0}, 1.0};
  const auto fault = [&](float score) {
    const std::vector<float> scores{score};
    return rounding_fault(judge_scores(scores, exact, 1e-4), scores, exact);
  };
  EXPECT_EQ(fault(1.0f + 0x1p-16f), "");
  EXPECT_NE(fault(std::nextafter(1.0f + 0x1p-16f, 2.0f)), "");
}

TEST(Scores, OfARowOfZerosHaveNoError) {
  const RowScores zeros{{0.0, 0.0}, {0.0f, 0.0f}, {1, 1}, 0.0};
  const std::vector<float> right{0.0f, 0.0f}, wrong{0.0f, 1e-38f};
  EXPECT_EQ(judge_scores(right, zeros, 0).max_error, 0);
  EXPECT_EQ(judge_scores(right, zeros, 0).faults, 0);
  EXPECT_EQ(judge_scores(wrong, zeros, 0).faults, 1);
  EXPECT_TRUE(std::isinf(judge_scores(wrong, zeros, 0).max_error));
}

}  // namespace
}  // namespace exact_topk::oracle
