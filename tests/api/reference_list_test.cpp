// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/support.h"

namespace exact_topk::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The third largest is 6; with a bound of 1/32 of the largest scores may be off
// by 1/4, and keys by 1/2.
const std::vector<float> kReference{8, 5.5f, 6, 1, 6.5f, 5.25f};
constexpr double kBound = 1.0 / 32;

Called check(const std::vector<std::int32_t>& entries, int contract,
             double bound = kBound) {
  const ScaleRow row(kReference);
  return check_list_f64(row.source(), list_of(entries, 3, contract), bound);
}

std::vector<std::int32_t> list_f64(const exact_topk_source& source, int k) {
  std::vector<std::int32_t> positions(
      static_cast<std::size_t>(std::min<std::int64_t>(source.keys, k)));
  char sentence[EXACT_TOPK_SENTENCE_BYTES] = "";
  EXPECT_EQ(exact_topk_list_f64(&source, k, positions.data(), sentence,
                                sizeof sentence),
            EXACT_TOPK_OK)
      << sentence;
  return positions;
}

// 8 lies above the 12 bits of 6 and 6.5, which share them: 6.5 comes before 6.
TEST(ListF64, IsTheBaseOrder) {
  const ScaleRow row(kReference);
  EXPECT_THAT(list_f64(row.source(), 3), ElementsAre(0, 4, 2));
  EXPECT_THAT(list_f64(row.source(), 9), ElementsAre(0, 1, 2, 3, 4, 5));
  const ScaleRow ties({1, 2, 1, 1});
  EXPECT_THAT(list_f64(ties.source(), 2), ElementsAre(1, 0));
}

TEST(ListF64, BadArgumentsHaveTheirSentences) {
  const ScaleRow row(kReference);
  const exact_topk_source source = row.source();
  std::int32_t positions[3] = {7, 7, 7};
  char sentence[64];
  EXPECT_EQ(
      exact_topk_list_f64(&source, 0, positions, sentence, sizeof sentence),
      EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "k is 0; it takes 1 to 2147483647");
  EXPECT_EQ(positions[0], 7);
  EXPECT_EQ(exact_topk_list_f64(&source, 3, nullptr, sentence, sizeof sentence),
            EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "positions is NULL");
  EXPECT_EQ(
      exact_topk_list_f64(nullptr, 3, positions, sentence, sizeof sentence),
      EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "source is NULL");
}

TEST(CheckListF64, KeysWithinTheMarginMayBeSwapped) {
  const Called exact = check({0, 2, 4}, EXACT_TOPK_POSITION, 0);
  EXPECT_EQ(exact.result.held, 1) << exact.sentence;
  EXPECT_EQ(exact.result.missed, 0);
  EXPECT_EQ(exact.result.relative_error, 0);

  const Called near = check({0, 1, 2}, EXACT_TOPK_SET);
  EXPECT_EQ(near.result.held, 1) << near.sentence;
  EXPECT_EQ(near.result.missed, 1);
  EXPECT_EQ(near.result.extra, 1);
  EXPECT_EQ(near.result.beyond, 0);
  // 8, 6.5 and 6 are the best; 8, 6 and 5.5 are listed.
  EXPECT_DOUBLE_EQ(near.result.relative_error,
                   std::sqrt((0.25 + 0.25) / (64 + 42.25 + 36)));

  const Called strict = check({0, 1, 2}, EXACT_TOPK_SET, 1.0 / 33);
  EXPECT_EQ(strict.result.held, 0);
  EXPECT_EQ(strict.result.beyond, 2);
  EXPECT_EQ(strict.result.first_index, 1);
  EXPECT_EQ(strict.result.first_position, 1);
  EXPECT_EQ(strict.sentence,
            "the k-th reference is 6 and scores within the bound move keys by "
            "0.485: 1 missed keys lie above that, 1 listed ones below; "
            "position 1 with the reference 5.5 is listed");
}

TEST(CheckListF64, AMissedKeyBeyondTheMarginIsNamed) {
  const Called missed = check({1, 2, 4}, EXACT_TOPK_VALUES);
  EXPECT_EQ(missed.result.held, 0);
  EXPECT_EQ(missed.result.beyond, 1);
  EXPECT_EQ(missed.result.first_index, -1);
  EXPECT_EQ(missed.result.first_position, 0);
  EXPECT_THAT(missed.sentence,
              HasSubstr("position 0 with the reference 8 is missed"));
}

TEST(CheckListF64, ContractsAddValidityAndOrder) {
  EXPECT_EQ(check({3, 5, 1}, EXACT_TOPK_VALID).result.held, 1);
  const Called twice = check({0, 0, 4}, EXACT_TOPK_VALID);
  EXPECT_EQ(twice.result.held, 0);
  EXPECT_EQ(twice.result.faults, 1);
  EXPECT_EQ(twice.result.first_index, 1);
  EXPECT_EQ(twice.sentence, "1 entries repeat a key");
  const Called order = check({0, 4, 2}, EXACT_TOPK_POSITION);
  EXPECT_EQ(order.result.held, 0);
  EXPECT_EQ(order.result.first_index, 2);
  EXPECT_EQ(order.result.first_position, 2);
  EXPECT_EQ(order.sentence, "the list is not in the promised order: position");
  EXPECT_EQ(check({0, 4, 2}, EXACT_TOPK_SET).result.held, 1);
}

TEST(CheckListF64, BadArgumentsHaveTheirSentences) {
  for (const int contract : {EXACT_TOPK_SORTED, EXACT_TOPK_BASE}) {
    const Called called = check({0, 2, 4}, contract);
    EXPECT_EQ(called.status, EXACT_TOPK_BAD_ARGUMENT);
    EXPECT_EQ(called.sentence,
              "list.contract is EXACT_TOPK_SORTED or BASE, which need the "
              "kernel's own scores");
  }
  const ScaleRow row(kReference);
  const std::vector<std::int32_t> entries{0, 2, 4};
  exact_topk_list list = list_of(entries, 3);
  list.nan_last = 1;
  EXPECT_THAT(check_list_f64(row.source(), list).sentence,
              StartsWith("list.nan_last and list.zeros_equal are rules"));
  EXPECT_THAT(check({0, 2, 4}, EXACT_TOPK_SET, 0.5).sentence,
              StartsWith("bound is 0.5; it takes 0 to less than 0.5"));
}

}  // namespace
}  // namespace exact_topk::tests
