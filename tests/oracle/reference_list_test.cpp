// SPDX-License-Identifier: Apache-2.0
#include "oracle/reference_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace exact_topk::oracle {
namespace {

using testing::ElementsAre;

// T is 6, the third largest; the largest is 8, so that a bound of 1/32 lets
// scores be off by 1/4 and keys by 1/2 about T.
RowScores reference() {
  RowScores scores;
  scores.value = {8, 5.5, 6, 1, 6.5, 5.25};
  scores.largest = 8;
  return scores;
}

ReferenceVerdict judged(const std::vector<std::int32_t>& positions,
                        double bound = 1.0 / 32) {
  return judge_against_reference(positions, reference(), 3, bound);
}

TEST(ReferenceList, IsTheBaseOrderOfTheValuesRoundedOnce) {
  // All four round to 1 in f32 or stay a power of two.
  const std::vector<double> values{0.5, 1 + 0x1p-30, 1, 2};
  EXPECT_THAT(reference_order(values, 2).positions, ElementsAre(3, 1));
  EXPECT_EQ(reference_order(values, 2).ties, 2);
  EXPECT_THAT(reference_order(values, 9).positions, ElementsAre(0, 1, 2, 3));
}

TEST(ReferenceList, TheReferencesOwnListIsRight) {
  const ReferenceVerdict verdict = judged({0, 2, 4}, 0);
  EXPECT_TRUE(verdict.exact.holds(Contract::kPosition));
  EXPECT_EQ(verdict.missed_beyond, 0);
  EXPECT_EQ(verdict.extra_beyond, 0);
  EXPECT_EQ(verdict.threshold, 6);
  EXPECT_EQ(judged({0, 2, 4}).margin, 0.5);
}

TEST(ReferenceList, KeysWithinTheMarginMayBeSwapped) {
  const ReferenceVerdict near = judged({0, 1, 2});  // 5.5 for 6.5: both at it
  EXPECT_EQ(near.exact.missed, 1);
  EXPECT_EQ(near.missed_beyond, 0);
  EXPECT_EQ(near.extra_beyond, 0);
  const ReferenceVerdict strict = judged({0, 1, 2}, 1.0 / 33);
  EXPECT_EQ(strict.missed_beyond, 1);
  EXPECT_EQ(strict.extra_beyond, 1);
  EXPECT_EQ(strict.first_extra_beyond, 1);
  EXPECT_EQ(strict.first_missed_beyond, 4);
}

TEST(ReferenceList, KeysBeyondTheMarginMayNot) {
  const ReferenceVerdict low = judged({0, 4, 5});  // 5.25 for 6
  EXPECT_EQ(low.extra_beyond, 1);
  EXPECT_EQ(low.first_extra_beyond, 2);
  EXPECT_EQ(low.missed_beyond, 0);
  const ReferenceVerdict high = judged({1, 2, 4});  // 5.5 for 8
  EXPECT_EQ(high.extra_beyond, 0);
  EXPECT_EQ(high.missed_beyond, 1);
  EXPECT_EQ(high.first_missed_beyond, 0);
}

TEST(ReferenceList, ANanIsBeyondEveryMargin) {
  RowScores scores = reference();
  scores.value[3] = -std::nan("");  // lowest by its bits
  EXPECT_EQ(judge_against_reference(std::vector{0, 3, 4}, scores, 3, 0.4)
                .first_extra_beyond,
            1);
}

TEST(ReferenceList, OfAnEmptyRowIsEmpty) {
  const ReferenceVerdict verdict =
      judge_against_reference({}, RowScores{}, 3, 1e-4);
  EXPECT_TRUE(verdict.exact.holds(Contract::kBase));
}

}  // namespace
}  // namespace exact_topk::oracle
