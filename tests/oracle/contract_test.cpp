// SPDX-License-Identifier: Apache-2.0
#include "oracle/contract.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "oracle/select.h"

namespace exact_topk::oracle {
namespace {

using List = std::vector<std::int32_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Contract kContracts[] = {Contract::kValid,  Contract::kValues,
                                   Contract::kSet,    Contract::kPosition,
                                   Contract::kSorted, Contract::kBase};

// The contracts that hold, by name.
std::string held(const ListVerdict& verdict) {
  std::string names;
  for (const Contract contract : kContracts)
    if (verdict.holds(contract))
      names += std::string(to_string(contract)) + " ";
  return names;
}

// Top 3: positions 1 (9), 3 (7) and 0, the lowest of three keys equal to 5.
const std::vector<float> kScores = {5, 9, 5, 7, 5, 1};

TEST(Contract, NamesAreParsedBack) {
  for (const Contract contract : kContracts)
    EXPECT_EQ(parse_contract(to_string(contract)), contract);
  EXPECT_EQ(to_string(Contract::kBase), "base");
  EXPECT_EQ(parse_contract("Base"), std::nullopt);
}

TEST(Contract, LadderOfOneRow) {
  // 12 bits tell 9, 7 and 5 apart, so that base order has two parts.
  EXPECT_EQ(held(judge_list(List{1, 3, 0}, kScores, 3)),
            "valid values set sorted base ");
  EXPECT_EQ(held(judge_list(List{0, 1, 3}, kScores, 3)),
            "valid values set position ");
  EXPECT_EQ(held(judge_list(List{3, 0, 1}, kScores, 3)), "valid values set ");
  EXPECT_EQ(held(judge_list(List{1, 3, 4}, kScores, 3)), "valid values ");
  EXPECT_EQ(held(judge_list(List{1, 3, 5}, kScores, 3)), "valid ");
  EXPECT_EQ(held(judge_list(List{1, 3, 3}, kScores, 3)), "");
  EXPECT_EQ(held(judge_list(List{1, 3, 6}, kScores, 3)), "");
  EXPECT_EQ(held(judge_list(List{1, 3}, kScores, 3)), "");
}

TEST(Contract, PlaceOfTheThreshold) {
  const ListVerdict verdict = judge_list(List{1, 3, 0}, kScores, 3);
  EXPECT_EQ(verdict.bits, 12);
  EXPECT_EQ(verdict.threshold, radix_key(5.0f));
  EXPECT_EQ(verdict.ties, 3);
  EXPECT_EQ(verdict.first_order_error, -1);
}

TEST(Contract, MissedKeyIsNamed) {
  const ListVerdict verdict = judge_list(List{1, 0, 5}, kScores, 3);
  EXPECT_TRUE(verdict.count && verdict.range && verdict.duplicates);
  EXPECT_FALSE(verdict.values || verdict.set);
  EXPECT_EQ(verdict.missed, 1);
  EXPECT_EQ(verdict.missed_ties, 0);
  EXPECT_EQ(verdict.missing, List{3});
  EXPECT_EQ(verdict.extra, 1);
  EXPECT_EQ(verdict.extras, List{5});
  EXPECT_EQ(verdict.order_errors, 2);
  EXPECT_EQ(verdict.first_order_error, 1);
}

TEST(Contract, WrongTieIsMissedAsATie) {
  const ListVerdict verdict = judge_list(List{1, 3, 2}, kScores, 3);
  EXPECT_TRUE(verdict.values);
  EXPECT_FALSE(verdict.set);
  EXPECT_EQ(verdict.missed, 1);
  EXPECT_EQ(verdict.missed_ties, 1);
  EXPECT_EQ(verdict.missing, List{0});
  EXPECT_EQ(verdict.extras, List{2});
}

TEST(Contract, DuplicateIsOneEntryAndAMissedKey) {
  const ListVerdict verdict = judge_list(List{1, 1, 1}, kScores, 3);
  EXPECT_FALSE(verdict.duplicates);
  EXPECT_EQ(verdict.duplicate_entries, 2);
  EXPECT_EQ(verdict.missed, 2);
  EXPECT_EQ(verdict.missed_ties, 1);
  EXPECT_EQ(verdict.extra, 0);
  EXPECT_FALSE(verdict.values);
}

// Two equal keys and the first of them twice: the values seem right.
TEST(Contract, DuplicateTieDoesNotPassAsTheOtherTie) {
  const std::vector<float> scores = {4, 4, 1};
  const ListVerdict verdict = judge_list(List{0, 0}, scores, 2);
  EXPECT_FALSE(verdict.values);
  EXPECT_EQ(verdict.missed_ties, 1);
}

TEST(Contract, HoleIsARangeFault) {
  const ListVerdict verdict = judge_list(List{1, -1, 0}, kScores, 3);
  EXPECT_TRUE(verdict.count);
  EXPECT_FALSE(verdict.range);
  EXPECT_EQ(verdict.out_of_range, 1);
  EXPECT_EQ(verdict.missing, List{3});
  for (const std::int32_t outside :
       {6, std::numeric_limits<std::int32_t>::max(),
        std::numeric_limits<std::int32_t>::min()})
    EXPECT_EQ(judge_list(List{1, outside, 0}, kScores, 3).out_of_range, 1);
}

TEST(Contract, PaddingIsMinusOneAndNothingElse) {
  EXPECT_EQ(held(judge_list(List{1, 3, 0, -1, -1}, kScores, 3)),
            "valid values set sorted base ");
  const ListVerdict padded = judge_list(List{1, 3, 0, -1, 2, 0}, kScores, 3);
  EXPECT_FALSE(padded.count);
  EXPECT_EQ(padded.entries_wrong_count, 2);
  EXPECT_TRUE(padded.range && padded.duplicates && padded.set && padded.base);
  EXPECT_FALSE(padded.holds(Contract::kValid));

  const ListVerdict shorter = judge_list(List{1}, kScores, 3);
  EXPECT_EQ(shorter.entries_wrong_count, 2);
  EXPECT_EQ(shorter.missed, 2);
  EXPECT_EQ(shorter.order_errors, 2);
  EXPECT_EQ(shorter.first_order_error, 1);
}

TEST(Contract, ShortRowsAreTheIdentity) {
  const std::vector<float> scores = {1, 3, 2};
  EXPECT_EQ(held(judge_list(List{0, 1, 2, -1}, scores, 4)),
            "valid values set position base ");
  EXPECT_EQ(held(judge_list(List{1, 2, 0}, scores, 3)),
            "valid values set sorted ");
  EXPECT_EQ(judge_list(List{0, 1, 2}, scores, 3).bits, 0);
  EXPECT_EQ(held(judge_list(List{-1, -1}, {}, 2)),
            "valid values set position sorted base ");
  EXPECT_EQ(held(judge_list(List{0}, {}, 2)), "");
}

// Seventeen winners missed: all are counted, sixteen are named.
TEST(Contract, AtMostSixteenAreNamed) {
  std::vector<float> scores(40, 0.0f);
  std::fill_n(scores.begin(), 20, 1.0f);
  List list(20);
  std::iota(list.begin(), list.end(), 17);
  const ListVerdict verdict = judge_list(list, scores, 20);
  EXPECT_EQ(verdict.missed, 17);
  EXPECT_EQ(verdict.extra, 17);
  EXPECT_EQ(verdict.missing.size(), 16u);
  EXPECT_EQ(verdict.extras.size(), 16u);
  EXPECT_EQ(verdict.extras[0], 20);
}

TEST(Contract, NanRanksByItsBitsUnlessLast) {
  const std::vector<float> scores = {1, kNan, -kInfinity, 2, -kNan};
  EXPECT_TRUE(judge_list(List{1, 3}, scores, 2).set);
  EXPECT_FALSE(judge_list(List{3, 0}, scores, 2).values);
  const ValueRules last{.nan_last = true};
  EXPECT_TRUE(judge_list(List{3, 0}, scores, 2, last).set);
  EXPECT_TRUE(judge_list(List{3, 0}, scores, 2, last).sorted);
  EXPECT_FALSE(judge_list(List{1, 3}, scores, 2, last).values);
  // Fewer numbers than k: -inf goes before any NaN, and among NaN the lowest
  // position wins, whatever their signs.
  EXPECT_TRUE(judge_list(List{0, 1, 2, 3}, scores, 4, last).set);
  const ListVerdict other = judge_list(List{0, 2, 3, 4}, scores, 4, last);
  EXPECT_TRUE(other.values);
  EXPECT_FALSE(other.set);
}

TEST(Contract, ZerosAreApartUnlessEqual) {
  const std::vector<float> scores = {-0.0f, 0.0f, -1.0f, 0.0f, 3.0f};
  EXPECT_TRUE(judge_list(List{4, 1, 3}, scores, 3).set);
  EXPECT_FALSE(judge_list(List{4, 0, 1}, scores, 3).values);
  const ValueRules equal{.zeros_equal = true};
  EXPECT_TRUE(judge_list(List{4, 0, 1}, scores, 3, equal).set);
  EXPECT_TRUE(judge_list(List{4, 0, 1}, scores, 3, equal).sorted);
  const ListVerdict by_bits = judge_list(List{4, 1, 3}, scores, 3, equal);
  EXPECT_TRUE(by_bits.values);
  EXPECT_FALSE(by_bits.set);
}

// Every list of up to three entries over every row of three scores of a tiny
// alphabet, against the definitions spelt out with sorts.
TEST(Contract, EveryListOfATinyRow) {
  const std::array<float, 5> alphabet = {-kInfinity, -0.0f, 0.0f, 1.0f, kNan};
  for (int code = 0; code < 125; ++code) {
    const std::vector<float> scores = {
        alphabet[static_cast<std::size_t>(code % 5)],
        alphabet[static_cast<std::size_t>(code / 5 % 5)],
        alphabet[static_cast<std::size_t>(code / 25)]};
    const auto key = [&](std::int32_t p) {
      return radix_key(scores[static_cast<std::size_t>(p)]);
    };
    List ranked = {0, 1, 2};
    std::ranges::stable_sort(ranked, std::greater<>(), key);
    for (int k = 1; k <= 3; ++k) {
      const ListJudge judge(scores, k);
      const List top(ranked.begin(), ranked.begin() + k);
      for (int lists = 0; lists < 125; ++lists) {
        const List all = {lists % 5 - 1, lists / 5 % 5 - 1, lists / 25 - 1};
        const List list(all.begin(), all.begin() + k);
        const ListVerdict verdict = judge.judge(list);
        const bool in_range =
            std::ranges::all_of(list, [](int p) { return p >= 0 && p < 3; });
        List distinct = list;
        std::ranges::sort(distinct);
        const bool unique =
            std::ranges::adjacent_find(distinct) == distinct.end();
        ASSERT_EQ(verdict.range, in_range);
        if (!in_range) continue;
        ASSERT_EQ(verdict.duplicates, unique);
        if (!unique) {
          ASSERT_EQ(held(verdict), "");
          continue;
        }
        std::vector<std::uint32_t> values, best;
        for (const std::int32_t p : list) values.push_back(key(p));
        for (const std::int32_t p : top) best.push_back(key(p));
        std::ranges::sort(values, std::greater<>());
        ASSERT_EQ(verdict.values, values == best);
        List sorted_top = top;
        std::ranges::sort(sorted_top);
        ASSERT_EQ(verdict.set, distinct == sorted_top);
        ASSERT_EQ(verdict.holds(Contract::kSorted), list == top);
        ASSERT_EQ(verdict.holds(Contract::kPosition), list == sorted_top);
        ASSERT_EQ(verdict.holds(Contract::kBase),
                  list == base_order(scores, k).positions);
      }
    }
  }
}

// The harness's controls: an exact list passes, and one replaced entry or one
// swap is seen by the check meant for it.
RC_GTEST_PROP(ContractProperties, ControlsAreCaught, ()) {
  const int n = *rc::gen::inRange(3, 3000);
  const int k = *rc::gen::inRange(2, n);
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  const unsigned values = *rc::gen::element(2u, 50u, 1u << 30);
  std::vector<float> scores;
  for (int i = 0; i < n; ++i) scores.push_back(float(random() % values));
  const ListJudge judge(scores, k);
  RC_ASSERT(judge.judge(judge.base_positions()).holds(Contract::kBase));
  RC_ASSERT(judge.judge(judge.top_k()).holds(Contract::kPosition));

  List swapped = judge.base_positions();
  const std::size_t a = random() % swapped.size();
  const std::size_t b =
      (a + 1 + random() % (swapped.size() - 1)) % swapped.size();
  std::swap(swapped[a], swapped[b]);
  const ListVerdict order = judge.judge(swapped);
  RC_ASSERT(order.set && !order.base);
  RC_ASSERT(order.order_errors == 2);
  RC_ASSERT(order.first_order_error ==
            static_cast<std::int64_t>(std::min(a, b)));

  List replaced = judge.base_positions();
  std::int32_t outsider = 0;
  while (std::ranges::binary_search(judge.top_k(), outsider)) ++outsider;
  replaced[a] = outsider;
  const ListVerdict missed = judge.judge(replaced);
  RC_ASSERT(missed.holds(Contract::kValid) && !missed.set);
  RC_ASSERT(missed.missed == 1 && missed.extra == 1);
  RC_ASSERT(missed.missing == List{judge.base_positions()[a]});
  RC_ASSERT(missed.extras == List{outsider});
}

}  // namespace
}  // namespace exact_topk::oracle
