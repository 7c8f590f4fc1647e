// SPDX-License-Identifier: Apache-2.0
#include "harness/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace exact_topk::harness {
namespace {

using ::testing::HasSubstr;

cases::Case at(int64_t pos, std::string cache) {
  cases::Case item;
  item.pos = pos;
  item.cache = std::move(cache);
  return item;
}

// n, winners among the last 4,096, bits, all equal, tie across the cut.
constexpr RowFacts kOrdinary{8448, 993, 12, false, false};

std::string why(const cases::Case& item, std::vector<RowFacts> rows) {
  return mistrusted(item, rows);
}

TEST(Mistrusted, IsNoOrdinaryCaseAndNoShortOne) {
  EXPECT_EQ(why(at(8447, "random"), {kOrdinary}), "");
  EXPECT_EQ(why(at(8446, "random"), {{2048, 2048, 0, false, false}}), "");
  cases::Case select = at(8447, "random");
  select.stage = cases::Stage::kSelect;
  EXPECT_EQ(why(select, {{2048, 2048, 0, false, false}}), "");
}

TEST(Mistrusted, WithoutARowOfMoreThanKKeys) {
  EXPECT_THAT(why(at(8447, "random"), {{2048, 2048, 0, false, false}}),
              HasSubstr("more than k"));
  EXPECT_EQ(why(at(8447, "random"),
                {{2048, 2048, 0, false, false}, {2049, 0, 12, false, false}}),
            "");
}

TEST(Mistrusted, WhereAllScoresAreEqualUnlessTheCacheIsZeros) {
  const RowFacts equal{8448, 0, 32, true, true};
  EXPECT_THAT(why(at(8447, "random"), {equal}),
              HasSubstr("all scores are equal"));
  EXPECT_EQ(why(at(8447, "zeros"), {equal}), "");
  EXPECT_EQ(why(at(8447, "random"), {equal, kOrdinary}), "");
  // A short row does not count.
  EXPECT_THAT(why(at(8447, "random"), {equal, {100, 100, 0, false, false}}),
              HasSubstr("all scores are equal"));
}

TEST(Mistrusted, TiesWithoutATieAcrossTheCut) {
  EXPECT_THAT(why(at(8447, "ties"), {kOrdinary}),
              HasSubstr("tie across the cut"));
  EXPECT_EQ(why(at(8447, "ties"), {kOrdinary, {8448, 0, 32, false, true}}), "");
}

TEST(Mistrusted, RecentWithoutMoreRecentWinnersThanTwiceChance) {
  // At n = 131,072 twice chance is 2 * 2048 * 4096 / 131072 = 128 winners.
  EXPECT_THAT(why(at(131071, "recent"), {{131072, 128, 12, false, false}}),
              HasSubstr("twice chance"));
  EXPECT_EQ(why(at(131071, "recent"), {{131072, 129, 12, false, false}}), "");
  EXPECT_EQ(why(at(65534, "recent"), {{65535, 0, 12, false, false}}), "");
}

TEST(Mistrusted, NarrowWithoutA24BitStop) {
  EXPECT_THAT(why(at(8447, "narrow"),
                  {{8448, 0, 12, false, false}, {8192, 0, 32, false, false}}),
              HasSubstr("24 bits"));
  EXPECT_EQ(why(at(8447, "narrow"),
                {{8448, 0, 12, false, false}, {8192, 0, 24, false, false}}),
            "");
  // Rows under 8,192 keys do not count, neither as stops nor as failures to
  // stop.
  EXPECT_THAT(why(at(8447, "narrow"),
                  {{8448, 0, 12, false, false}, {8191, 0, 24, false, false}}),
              HasSubstr("24 bits"));
  EXPECT_EQ(why(at(8447, "narrow"), {{8191, 0, 12, false, false}}), "");
}

RowFacts facts(const std::vector<float>& scores, int k) {
  const oracle::ListJudge judge(scores, k);
  return row_facts(scores, judge, judge.judge(judge.base_positions()));
}

TEST(RowFacts, TellTiesAcrossTheCutFromTiesWithinIt) {
  EXPECT_TRUE(facts({3, 2, 2, 1}, 2).tie_across_cut);
  EXPECT_FALSE(facts({3, 2, 2, 1}, 3).tie_across_cut);
  EXPECT_FALSE(facts({3, 2, 2, 1}, 4).tie_across_cut);
  EXPECT_FALSE(facts({3, 2, 1, 1}, 2).tie_across_cut);
}

TEST(RowFacts, KnowEqualScoresByTheirBits) {
  EXPECT_TRUE(facts({2, 2, 2}, 1).all_equal);
  EXPECT_FALSE(facts({0.0f, -0.0f, 0.0f}, 1).all_equal);
}

TEST(RowFacts, CountWinnersInTheLast4096) {
  std::vector<float> scores(5000, 0.0f);
  scores[903] = scores[904] = scores[4999] =
      1.0f;  // the last 4,096 begin at 904
  EXPECT_EQ(facts(scores, 3).recent_winners, 2);
  EXPECT_EQ(facts(scores, 3).keys, 5000);
}

}  // namespace
}  // namespace exact_topk::harness
