// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "dumps/safetensors.h"
#include "tests/api/support.h"

namespace exact_topk::tests {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Position 1 is the best; 3 and 4 tie for the second place, which is 3's.
const std::vector<float> kScores{1, 9, 2, 5, 5};

struct Level {
  int contract;
  std::vector<std::int32_t> right, wrong;
};

TEST(List, EachLevelHoldsAndFails) {
  for (const Level& level : {Level{EXACT_TOPK_VALID, {0, 2}, {1, 1}},
                             Level{EXACT_TOPK_VALUES, {4, 1}, {1, 2}},
                             Level{EXACT_TOPK_SET, {3, 1}, {1, 4}},
                             Level{EXACT_TOPK_POSITION, {1, 3}, {3, 1}},
                             Level{EXACT_TOPK_SORTED, {1, 3}, {3, 1}}}) {
    const Called right = check_list(kScores, level.right, 2, level.contract);
    EXPECT_EQ(right.status, EXACT_TOPK_OK) << right.sentence;
    EXPECT_EQ(right.result.held, 1) << right.sentence;
    EXPECT_EQ(right.sentence, "");
    EXPECT_EQ(right.result.first_index, -1);
    EXPECT_EQ(right.result.first_position, -1);
    const Called wrong = check_list(kScores, level.wrong, 2, level.contract);
    EXPECT_EQ(wrong.status, EXACT_TOPK_OK);
    EXPECT_EQ(wrong.result.held, 0) << level.contract;
    EXPECT_NE(wrong.sentence, "");
    EXPECT_GE(wrong.result.first_index, 0);
  }
}

// All keys share twelve bits, so that the k-th comes last in the base order.
TEST(List, BaseOrderPutsTheThresholdLast) {
  const std::vector<float> close{1.01f, 1.03f, 1.02f};
  const Called base = check_list(close, {1, 2}, 2, EXACT_TOPK_BASE);
  EXPECT_EQ(base.result.held, 1) << base.sentence;
  EXPECT_EQ(base.result.bits, 12);
  const Called other = check_list(close, {2, 1}, 2, EXACT_TOPK_BASE);
  EXPECT_EQ(other.result.held, 0);
  EXPECT_EQ(other.result.order_errors, 2);
  EXPECT_EQ(other.result.first_index, 0);
  EXPECT_EQ(other.result.first_position, 2);
  EXPECT_EQ(other.result.levels, 1u << EXACT_TOPK_VALID |
                                     1u << EXACT_TOPK_VALUES |
                                     1u << EXACT_TOPK_SET);
}

TEST(List, CountsWhatIsWrong) {
  const Called tie = check_list(kScores, {1, 4}, 2);
  EXPECT_EQ(tie.result.missed, 1);
  EXPECT_EQ(tie.result.missed_ties, 1);
  EXPECT_EQ(tie.result.extra, 1);
  EXPECT_EQ(tie.result.faults, 0);
  EXPECT_EQ(tie.result.first_index, 1);
  EXPECT_EQ(tie.result.first_position, 4);
  EXPECT_THAT(tie.sentence, StartsWith("1 keys of the exact top k are missed "
                                       "(positions 3), 1 others are listed "
                                       "(positions 4)"));
  const Called outside = check_list(kScores, {1, 5}, 2);
  EXPECT_EQ(outside.result.faults, 1);
  EXPECT_EQ(outside.result.first_index, 1);
  EXPECT_EQ(outside.result.first_position, -1);
  EXPECT_THAT(outside.sentence, StartsWith("entry 1 is 5, which names no key"));
  EXPECT_EQ(check_list(kScores, {1, 1}, 2).sentence, "1 entries repeat a key");
  EXPECT_THAT(check_list(kScores, {1, 3, 0}, 2).sentence,
              StartsWith("entry 2 is 0, past the 2"));
  EXPECT_EQ(check_list(kScores, {1, 3, -1, -1}, 2).result.held, 1);
  const Called short_list = check_list(kScores, {1}, 2);
  EXPECT_EQ(short_list.result.faults, 1);
  EXPECT_EQ(short_list.result.first_index, 1);
  EXPECT_EQ(check_list(kScores, {0, 1, 2, 3, 4, -1}, 6).result.held, 1);
  EXPECT_EQ(check_list({}, {-1, -1}, 2, EXACT_TOPK_BASE).result.held, 1);
}

// The best two are 4 and 3; listed are 4 and 0, at the angle of 4/5.
TEST(List, AgreementIsThatOfTheListedScores) {
  const std::vector<float> scores{3, 4, 0};
  const exact_topk_result right = check_list(scores, {0, 1}, 2).result;
  EXPECT_EQ(right.relative_error, 0);
  EXPECT_EQ(right.cosine, 1);
  const exact_topk_result wrong = check_list(scores, {2, 1}, 2).result;
  EXPECT_DOUBLE_EQ(wrong.relative_error, 3.0 / 5);
  EXPECT_DOUBLE_EQ(wrong.cosine, 4.0 / 5);
  // A tie of a higher position has the same value.
  EXPECT_EQ(check_list(kScores, {4, 1}, 2).result.relative_error, 0);
  // A key repeated and one that is none count once and not at all.
  EXPECT_DOUBLE_EQ(check_list(scores, {1, 1}, 2).result.cosine, 4.0 / 5);
  EXPECT_DOUBLE_EQ(check_list(scores, {1, 7}, 2).result.cosine, 4.0 / 5);
}

// Two pages: position 64 is slot 5 * 64, position 3 is slot 7 * 64 + 3.
TEST(List, SlotsGoThroughThePageTable) {
  std::vector<float> scores(65, 0.0f);
  scores[64] = 2;
  scores[3] = 1;
  const std::vector<std::int32_t> pages{7, 5, -9};  // the third is never read
  const auto with = [&](std::vector<std::int32_t> slots) {
    exact_topk_list list = list_of(slots, 2, EXACT_TOPK_SORTED);
    list.page_table = pages.data();
    list.pages = 3;
    return check_list(scores_of(scores), list);
  };
  EXPECT_EQ(with({5 * 64, 7 * 64 + 3}).result.held, 1);
  EXPECT_THAT(with({5 * 64 + 1, 7 * 64 + 3}).sentence,
              StartsWith("entry 0 is 321, which names no key"));
  EXPECT_EQ(with({6 * 64, 7 * 64 + 3}).result.faults, 1);
  EXPECT_EQ(with({64, 3}).result.faults, 2);
}

TEST(List, EntriesMayBeOf64BitsAndLieAnywhere) {
  std::vector<std::byte> bytes(1 + 3 * 8);
  const std::int64_t entries[] = {1, 3, -1};
  std::memcpy(&bytes[1], entries, sizeof entries);
  exact_topk_list list = list_of({}, 2);
  list.dtype = EXACT_TOPK_I64;
  list.entries = &bytes[1];
  list.count = 3;
  EXPECT_EQ(check_list(scores_of(kScores), list).result.held, 1);
  const std::int64_t far[] = {1, (std::int64_t{1} << 32) + 3, -1};
  std::memcpy(&bytes[1], far, sizeof far);
  EXPECT_EQ(check_list(scores_of(kScores), list).result.faults, 1);
}

// 2, 1 and 1.5 in both formats, at an odd address.
TEST(List, ScoresMayBeHalves) {
  for (const auto& [dtype, codes] :
       {std::pair{EXACT_TOPK_F16,
                  std::array<std::uint16_t, 3>{0x4000, 0x3C00, 0x3E00}},
        std::pair{EXACT_TOPK_BF16,
                  std::array<std::uint16_t, 3>{0x4000, 0x3F80, 0x3FC0}}}) {
    std::vector<std::byte> bytes(1 + sizeof codes);
    std::memcpy(&bytes[1], codes.data(), sizeof codes);
    exact_topk_scores scores{sizeof scores, dtype, &bytes[1], 3};
    const std::vector<std::int32_t> right{0, 2, 1}, wrong{0, 1, 2};
    EXPECT_EQ(
        check_list(scores, list_of(right, 3, EXACT_TOPK_SORTED)).result.held,
        1);
    EXPECT_EQ(
        check_list(scores, list_of(wrong, 3, EXACT_TOPK_SORTED)).result.held,
        0);
  }
}

TEST(List, ValueRules) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores{-0.0f, 0.0f, kNan};
  const auto with = [&](std::int32_t position, bool nan_last,
                        bool zeros_equal) {
    const std::vector<std::int32_t> entries{position};
    exact_topk_list list = list_of(entries, 1);
    list.nan_last = nan_last;
    list.zeros_equal = zeros_equal;
    return check_list(scores_of(scores), list).result.held;
  };
  EXPECT_EQ(with(2, false, false), 1);
  EXPECT_EQ(with(1, true, false), 1);
  EXPECT_EQ(with(0, true, false), 0);
  EXPECT_EQ(with(0, true, true), 1);
  EXPECT_EQ(with(1, true, true), 0);
}

// The lists of the vectors, and the same with one entry changed.
TEST(List, VectorsHoldAndFailWhereAnEntryIsChanged) {
  for (const char* file : {"order", "order_edges"}) {
    const dumps::Safetensors vectors(std::string(EXACT_TOPK_TEST_DATA) +
                                     "/vectors/" + file + ".safetensors");
    std::set<std::string> rows;
    for (const auto& [name, entry] : vectors.tensors())
      rows.insert(name.substr(0, name.find('.')));
    ASSERT_FALSE(rows.empty());
    for (const std::string& row : rows) {
      const auto scores = vectors.read<float>(row + ".scores");
      auto list = vectors.read<std::int32_t>(row + ".list");
      const Called right = check_list(scores, list, 2048, EXACT_TOPK_BASE);
      EXPECT_EQ(right.result.held, 1) << row << ": " << right.sentence;
      EXPECT_EQ(right.result.bits,
                vectors.read<std::int32_t>(row + ".bits").at(0));
      std::swap(list[7], list[1900]);
      const Called swapped = check_list(scores, list, 2048, EXACT_TOPK_BASE);
      EXPECT_EQ(swapped.result.held, 0) << row;
      EXPECT_EQ(swapped.result.order_errors, 2) << row;
      EXPECT_EQ(swapped.result.first_index, 7) << row;
      EXPECT_EQ(swapped.result.first_position, list[7]) << row;
    }
  }
}

struct BadList {
  void (*spoil)(exact_topk_scores&, exact_topk_list&);
  const char* sentence;
};

TEST(List, EveryBadArgumentHasItsSentence) {
  static const std::int32_t kOne[] = {3}, kNegative[] = {-1};
  using S = exact_topk_scores;
  using L = exact_topk_list;
  for (const BadList& bad : std::vector<BadList>{
           {[](S&s, L&) { s.struct_size = 8; },
            "scores.struct_size is 8; this library knows 24"},
           {[](S&s, L&) { s.dtype = EXACT_TOPK_F64; },
            "scores.dtype is 7; it takes EXACT_TOPK_F32, F16 or BF16"},
           {[](S&s, L&) { s.n = -1; },
            "scores.n is -1; it takes 0 to 2147483647"},
           {[](S&s, L&) { s.n = std::int64_t{1} << 31; },
            "scores.n is 2147483648; it takes 0 to 2147483647"},
           {[](S&s, L&) { s.data = nullptr; }, "scores.data is NULL"},
           {[](S&, L&l) { l.struct_size = 0; },
            "list.struct_size is 0; this library knows 56"},
           {[](S&, L&l) { l.dtype = 0; },
            "list.dtype is 0; it takes EXACT_TOPK_I32 or I64"},
           {[](S&, L&l) { l.count = -2; },
            "list.count is -2; it takes 0 to 2147483647"},
           {[](S&, L&l) { l.entries = nullptr; }, "list.entries is NULL"},
           {[](S&, L&l) { l.k = 0; }, "list.k is 0; it takes 1 to 2147483647"},
           {[](S&, L&l) { l.contract = 0; },
            "list.contract is 0; it takes EXACT_TOPK_VALID, VALUES, SET, "
            "POSITION, SORTED or BASE"},
           {[](S&, L&l) { l.contract = 7; },
            "list.contract is 7; it takes EXACT_TOPK_VALID, VALUES, SET, "
            "POSITION, SORTED or BASE"},
           {[](S&, L&l) { l.nan_last = 2; },
            "list.nan_last is 2; it takes 0 to 1"},
           {[](S&, L&l) { l.zeros_equal = -1; },
            "list.zeros_equal is -1; it takes 0 to 1"},
           {[](S&, L&l) {
              l.contract = EXACT_TOPK_BASE;
              l.nan_last = 1;
            },
            "list.contract is EXACT_TOPK_BASE, which knows neither nan_last "
            "nor zeros_equal"},
           {[](S&, L&l) { l.page_table = kOne; },
            "list.pages is 0, and 5 keys lie on 1 pages"},
           {[](S&, L&l) {
              l.page_table = kNegative;
              l.pages = 1;
            },
            "list.page_table has page -1; it takes 0 to 2147483646"},
       }) {
    exact_topk_scores scores = scores_of(kScores);
    const std::vector<std::int32_t> entries{1, 3};
    exact_topk_list list = list_of(entries, 2);
    bad.spoil(scores, list);
    const Called called = check_list(scores, list);
    EXPECT_EQ(called.status, EXACT_TOPK_BAD_ARGUMENT) << bad.sentence;
    EXPECT_EQ(called.sentence, bad.sentence);
    EXPECT_EQ(called.result.first_index, 0) << "the result was written";
  }
}

TEST(List, APageNamedTwiceIsRefused) {
  const std::vector<float> scores(65, 1.0f);
  const std::vector<std::int32_t> pages{3, 3}, entries{192};
  exact_topk_list list = list_of(entries, 1);
  list.page_table = pages.data();
  list.pages = 2;
  EXPECT_EQ(check_list(scores_of(scores), list).sentence,
            "list.page_table names page 3 twice");
}

TEST(List, WhatIsNotThereIsNamed) {
  const exact_topk_scores scores = scores_of(kScores);
  const exact_topk_list list = list_of({}, 2);
  exact_topk_result result{};
  result.struct_size = sizeof result;
  char sentence[64];
  const auto status = [&](const exact_topk_scores* s, const exact_topk_list* l,
                          exact_topk_result* r) {
    return exact_topk_check_list(s, l, r, sentence, sizeof sentence);
  };
  EXPECT_EQ(status(nullptr, &list, &result), EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "scores is NULL");
  EXPECT_EQ(status(&scores, nullptr, &result), EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "list is NULL");
  EXPECT_EQ(status(&scores, &list, nullptr), EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "result is NULL");
  result.struct_size = 4;
  EXPECT_EQ(status(&scores, &list, &result), EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "result.struct_size is 4; this library knows 104");
}

TEST(List, SentencesAreCutToTheirBuffer) {
  char sentence[9] = "????????";
  EXPECT_EQ(exact_topk_check_list(nullptr, nullptr, nullptr, sentence, 7),
            EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "result");
  EXPECT_EQ(sentence[7], '?');
  EXPECT_EQ(exact_topk_check_list(nullptr, nullptr, nullptr, nullptr, 0),
            EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_EQ(exact_topk_check_list(nullptr, nullptr, nullptr, sentence, 0),
            EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "result");
}

// Sixteen positions of each kind are named, of ten digits at most.
TEST(List, TheLongestSentenceFits) {
  constexpr std::size_t kLongest =
      sizeof "2147483647 keys of the exact top k are missed (positions  ...), "
             "2147483647 others are listed (positions  ...)" +
      2 * 16 * sizeof "2147483647";
  EXPECT_LT(kLongest, std::size_t{EXACT_TOPK_SENTENCE_BYTES});
}

}  // namespace
}  // namespace exact_topk::tests
