// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dumps/safetensors.h"
#include "tests/api/support.h"

namespace exact_topk::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> f64(const exact_topk_source& source) {
  std::vector<double> scores(static_cast<std::size_t>(source.keys));
  char sentence[EXACT_TOPK_SENTENCE_BYTES] = "";
  EXPECT_EQ(
      exact_topk_scores_f64(&source, scores.data(), sentence, sizeof sentence),
      EXACT_TOPK_OK)
      << sentence;
  return scores;
}

TEST(Scores, AreScaleTimesWeightTimesDot) {
  const ScaleRow row({0.5f, 2, 0.25f});
  EXPECT_THAT(f64(row.source()), ElementsAre(0.5, 2, 0.25));

  // Two heads, -3 and 2: relu leaves the second alone where dim 0 is 1.
  exact_topk_source source = row.source();
  std::vector<float> query(256, 0.0f);
  query[0] = -1;
  query[128] = 3;
  const float weights[] = {-3, 2};
  source.query = query.data();
  source.weights = weights;
  source.heads = 2;
  EXPECT_THAT(f64(source), ElementsAre(3, 12, 1.5));
}

// Each format's code for 1.5; FP8's scale is a head's.
TEST(Scores, QueriesComeInEveryFormat) {
  const ScaleRow row({1, 2});
  std::vector<std::uint16_t> halves(128, 0);
  std::vector<std::uint8_t> bytes(128, 0);
  exact_topk_source source = row.source();
  source.query = halves.data();
  for (const auto& [dtype, code] :
       {std::pair{EXACT_TOPK_BF16, std::uint16_t{0x3FC0}},
        std::pair{EXACT_TOPK_F16, std::uint16_t{0x3E00}}}) {
    halves[0] = code;
    source.query_dtype = dtype;
    EXPECT_THAT(f64(source), ElementsAre(1.5, 3)) << dtype;
  }
  const float scale = 4;
  bytes[0] = 0x3C;
  source.query_dtype = EXACT_TOPK_F8_E4M3;
  source.query = bytes.data();
  source.q_scale = &scale;
  EXPECT_THAT(f64(source), ElementsAre(6, 12));
}

// 0x38 is 1 in e4m3fn and 0.5 in e4m3fnuz. In the preshuffled layout dim 0 of
// token 1 lies at byte 16, where plain has dim 16 of token 0.
TEST(Scores, CachesComeInBothFormatsAndLayouts) {
  const ScaleRow row({1, 2});
  exact_topk_source source = row.source();
  source.cache_fp8 = 1;
  EXPECT_THAT(f64(source), ElementsAre(0.5, 1));
  source.cache_fp8 = 0;
  source.page_layout = 1;
  EXPECT_THAT(f64(source), ElementsAre(1, 0));
}

TEST(Scores, PagesGoThroughTheTable) {
  std::vector<float> scales(66, 1.0f);
  scales[64] = 7;
  const ScaleRow row(scales, {3, 1, 0});
  const std::vector<double> scores = f64(row.source());
  EXPECT_EQ(scores[64], 7);
  EXPECT_EQ(scores[65], 1);
}

// References 3, 4 and 0; the largest is 4.
TEST(Scores, ErrorsAreMeasuredAgainstTheReference) {
  const ScaleRow row({3, 4, 0});
  const auto with = [&](std::vector<float> scores, double bound) {
    return check_scores(scores_of(scores), row.source(), bound);
  };
  const Called right = with({3, 4, 0}, 0);
  EXPECT_EQ(right.result.held, 1) << right.sentence;
  EXPECT_EQ(right.result.max_error, 0);
  EXPECT_EQ(right.result.relative_error, 0);
  EXPECT_EQ(right.result.cosine, 1);
  EXPECT_EQ(right.result.first_position, -1);

  const Called off = with({3, 5, 0}, 0.25);  // exactly the bound
  EXPECT_EQ(off.result.held, 1) << off.sentence;
  EXPECT_DOUBLE_EQ(off.result.max_error, 1.0 / 4);
  EXPECT_DOUBLE_EQ(off.result.relative_error, 1.0 / 5);
  EXPECT_DOUBLE_EQ(off.result.cosine, 29.0 / (5 * std::sqrt(34.0)));
  const Called far = with({3, std::nextafterf(5, 6), 0}, 0.25);
  EXPECT_EQ(far.result.held, 0);
  EXPECT_EQ(far.result.faults, 1);
  EXPECT_EQ(far.result.first_index, 1);
  EXPECT_EQ(far.result.first_position, 1);
  EXPECT_THAT(far.sentence, HasSubstr("score 1 is 5.00000048"));

  const Called zero = with({3, 4, 1e-30f}, 0.25);  // no term is nonzero
  EXPECT_EQ(zero.result.held, 0);
  EXPECT_EQ(zero.result.first_position, 2);
  EXPECT_THAT(zero.sentence, HasSubstr("must be 0"));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    const Called found = with({bad, 4, 0}, 0.49);
    EXPECT_EQ(found.result.held, 0);
    EXPECT_TRUE(std::isinf(found.result.max_error));
    EXPECT_TRUE(std::isinf(found.result.relative_error));
    EXPECT_EQ(found.result.cosine, 0);
  }
  const Called doubled = with({6, 8, 0}, 0.1);  // a scale's fault
  EXPECT_EQ(doubled.result.faults, 2);
  EXPECT_DOUBLE_EQ(doubled.result.cosine, 1);
  EXPECT_DOUBLE_EQ(doubled.result.relative_error, 1);
}

// 1 + 2^-11 is the midpoint between two f16 and rounds to 1 (0x3C00); one ulp
// further up, 1 + 2^-10, is as near, the next is not.
TEST(Scores, HalvesAreGivenHalfAnUlp) {
  const ScaleRow row({1 + 0x1p-11f});
  for (const auto& [code, held] :
       {std::pair{0x3C00, 1}, std::pair{0x3C01, 1}, std::pair{0x3C02, 0}}) {
    const auto half = static_cast<std::uint16_t>(code);
    const exact_topk_scores scores{sizeof scores, EXACT_TOPK_F16, &half, 1};
    EXPECT_EQ(check_scores(scores, row.source(), 0).result.held, held) << code;
  }
}

TEST(Scores, OfAnEmptyRowHold) {
  const ScaleRow row({});
  exact_topk_source source = row.source();
  source.cache = nullptr;
  source.cache_pages = 0;
  EXPECT_EQ(check_scores(scores_of({}), source).result.held, 1);
  EXPECT_EQ(exact_topk_scores_f64(&source, nullptr, nullptr, 0), EXACT_TOPK_OK);
}

// The vector's f64 scores, and f32 ones of which one is spoilt.
TEST(Scores, VectorHoldsAndFailsWhereAScoreIsStale) {
  const dumps::Safetensors vectors(std::string(EXACT_TOPK_TEST_DATA) +
                                   "/vectors/scores.safetensors");
  const auto query = vectors.read<std::uint16_t>("index_q");
  const auto weights = vectors.read<float>("head_weights");
  const auto cache = vectors.read<std::uint8_t>("index_cache");
  const auto expected = vectors.read<double>("scores_f64");
  for (std::size_t r = 0; r < 2; ++r) {
    exact_topk_source source{};
    source.struct_size = sizeof source;
    source.query_dtype = EXACT_TOPK_BF16;
    source.query = &query[r * 32 * 128];
    source.weights = &weights[r * 32];
    source.cache = cache.data();
    source.cache_pages = 11;
    source.keys = 700;
    source.heads = 32;
    const std::vector<double> scores = f64(source);
    double largest = 0;
    for (std::size_t j = 0; j < 700; ++j)
      largest = std::max(largest, std::abs(expected[r * 700 + j]));
    std::vector<float> rounded;
    for (std::size_t j = 0; j < 700; ++j) {
      ASSERT_NEAR(scores[j], expected[r * 700 + j], 1e-13 * largest);
      rounded.push_back(static_cast<float>(expected[r * 700 + j]));
    }
    const Called right = check_scores(scores_of(rounded), source, 0x1p-24);
    EXPECT_EQ(right.result.held, 1) << right.sentence;
    EXPECT_LT(right.result.relative_error, 0x1p-24);
    EXPECT_GT(right.result.cosine, 0.999999999);
    rounded[350] += static_cast<float>(2e-4 * largest);
    const Called wrong = check_scores(scores_of(rounded), source);
    EXPECT_EQ(wrong.result.faults, 1);
    EXPECT_EQ(wrong.result.first_position, 350);
  }
}

struct BadSource {
  void (*spoil)(exact_topk_source&);
  const char* sentence;
};

TEST(Scores, EveryBadArgumentHasItsSentence) {
  static const float kScale = 1;
  static const std::int32_t kPages[] = {0, 0}, kOutside[] = {0, 2};
  using Source = exact_topk_source;
  const ScaleRow row(std::vector<float>(65, 1.0f));  // on two pages
  const std::vector<float> scores(65, 1.0f);
  for (const BadSource& bad : std::vector<BadSource>{
           {[](Source& s) { s.struct_size = 1; },
            "source.struct_size is 1; this library knows 88"},
           {[](Source& s) { s.query_dtype = EXACT_TOPK_I32; },
            "source.query_dtype is 5; it takes EXACT_TOPK_BF16, F32, F16 or "
            "F8_E4M3"},
           {[](Source& s) { s.heads = 0; },
            "source.heads is 0; it takes 1 to 65536"},
           {[](Source& s) { s.heads = 65537; },
            "source.heads is 65537; it takes 1 to 65536"},
           {[](Source& s) { s.keys = 64; },
            "scores.n is 65, and source.keys is 64"},
           {[](Source& s) { s.cache_pages = -1; },
            "source.cache_pages is -1; it takes 0 to 2147483647"},
           {[](Source& s) { s.cache_pages = 1; },
            "source.cache_pages is 1, and 65 keys without a page table lie on "
            "2 pages"},
           {[](Source& s) { s.cache_fp8 = 2; },
            "source.cache_fp8 is 2; it takes 0 to 1"},
           {[](Source& s) { s.page_layout = 2; },
            "source.page_layout is 2; it takes 0 to 1"},
           {[](Source& s) { s.reserved = 1; },
            "source.reserved is 1; it takes 0 to 0"},
           {[](Source& s) { s.query = nullptr; }, "source.query is NULL"},
           {[](Source& s) { s.weights = nullptr; }, "source.weights is NULL"},
           {[](Source& s) { s.cache = nullptr; }, "source.cache is NULL"},
           {[](Source& s) { s.q_scale = &kScale; },
            "source.q_scale is given; it goes with an F8_E4M3 query"},
           {[](Source& s) { s.query_dtype = EXACT_TOPK_F8_E4M3; },
            "source.q_scale is NULL, which an F8_E4M3 query needs"},
           {[](Source& s) {
              s.page_table = kPages;
              s.pages = 1;
            },
            "source.pages is 1, and 65 keys lie on 2 pages"},
           {[](Source& s) {
              s.page_table = kPages;
              s.pages = 2;
            },
            "source.page_table names page 0 twice"},
           {[](Source& s) {
              s.page_table = kOutside;
              s.pages = 2;
            },
            "source.page_table has page 2; it takes 0 to 1"},
       }) {
    exact_topk_source source = row.source();
    bad.spoil(source);
    const Called called = check_scores(scores_of(scores), source);
    EXPECT_EQ(called.status, EXACT_TOPK_BAD_ARGUMENT) << bad.sentence;
    EXPECT_EQ(called.sentence, bad.sentence);
    EXPECT_EQ(called.result.first_index, 0) << "the result was written";
  }
  for (const double bound : {-1e-9, 0.5, std::nan("")})
    EXPECT_THAT(check_scores(scores_of(scores), row.source(), bound).sentence,
                HasSubstr("it takes 0 to less than 0.5"));
  char sentence[64];
  const exact_topk_source source = row.source();
  EXPECT_EQ(exact_topk_scores_f64(&source, nullptr, sentence, sizeof sentence),
            EXACT_TOPK_BAD_ARGUMENT);
  EXPECT_STREQ(sentence, "scores is NULL");
}

}  // namespace
}  // namespace exact_topk::tests
