// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <exact_topk/exact_topk.hpp>

#include "tests/api/support.h"

namespace exact_topk::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Cpp, ListsOfAnyContainer) {
  const std::vector<float> scores{1, 9, 2, 5, 5};
  const Verdict right = exact_topk::check_list(
      scores, std::vector<std::int32_t>{1, 3}, 2, EXACT_TOPK_SORTED);
  EXPECT_TRUE(right);
  EXPECT_EQ(right.sentence, "");
  EXPECT_TRUE(
      exact_topk::check_list(scores, std::array<std::int64_t, 2>{3, 1}, 2));
  const Verdict wrong =
      exact_topk::check_list(scores, std::vector<long>{1, 4}, 2);
  EXPECT_FALSE(wrong);
  EXPECT_EQ(wrong.missed, 1);
  EXPECT_THAT(wrong.sentence, HasSubstr("missed (positions 3)"));
}

TEST(Cpp, ScoresAndListsOfASource) {
  const ScaleRow row({1, 4, 2});
  const exact_topk_source source = row.source();
  EXPECT_THAT(scores_f64(source), ElementsAre(1, 4, 2));
  EXPECT_THAT(list_f64(source, 2), ElementsAre(1, 2));
  const std::vector<float> scores{1, 4, 2.5f};
  EXPECT_FALSE(exact_topk::check_scores(exact_topk::row(scores), source));
  EXPECT_TRUE(exact_topk::check_scores(exact_topk::row(scores), source, 0.2));
  const std::vector<std::int32_t> entries{0, 1};
  EXPECT_FALSE(
      exact_topk::check_list_f64(source, exact_topk::list(entries, 2)));
  EXPECT_TRUE(
      exact_topk::check_list_f64(source, exact_topk::list(entries, 2), 0.2));
}

TEST(Cpp, StatusesAreErrors) {
  try {
    exact_topk::check_list(std::vector<float>{1}, std::vector<std::int32_t>{0},
                           0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), EXACT_TOPK_BAD_ARGUMENT);
    EXPECT_STREQ(error.what(), "list.k is 0; it takes 1 to 2147483647");
  }
  exact_topk_source source = ScaleRow({}).source();
  source.keys = -1;
  EXPECT_THROW(scores_f64(source), Error);
}

TEST(Cpp, Digests) {
  const std::vector<std::int32_t> words{1, 2};
  EXPECT_EQ(exact_topk::digest(words),
            "f03278057b4d5f43801f6d40872a9d20f6ef00d4b89530e1c5b25a9f7013b80c");
}

}  // namespace
}  // namespace exact_topk::tests
