// SPDX-License-Identifier: Apache-2.0
//
// xtk_score against the vectors and against integers, whose sums are exact in
// any order.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "dumps/safetensors.h"
#include "tests/kernels/opened.h"

namespace exact_topk::tests {
namespace {

TEST(Score, Vectors) {
  const dumps::Safetensors file(std::string(EXACT_TOPK_TEST_DATA) +
                                "/vectors/scores.safetensors");
  const auto query = file.read<uint16_t>("index_q");
  const auto weights = file.read<float>("head_weights");
  const auto cache = file.read<uint8_t>("index_cache");
  const auto expected = file.read<double>("scores_f64");
  const std::vector<int32_t> table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<int32_t> lengths = {700, 700};
  for (const int wave : {32, 64}) {
    auto options = small_options();
    options.geometry.heads = 32;
    options.wave_size = wave;
    const Opened candidate(options);
    const float untouched = -77.0f;
    std::vector<float> scores(2 * 704, untouched);
    const xtk_score_args args{.struct_size = sizeof(args),
                              .arm = "base",
                              .rows = 2,
                              .index_query = query.data(),
                              .weights = weights.data(),
                              .cache = cache.data(),
                              .pages = 11,
                              .page_table = table.data(),
                              .table_width = 11,
                              .lengths = lengths.data(),
                              .scores = scores.data(),
                              .score_stride = 704};
    candidate.check(xtk_score(candidate.get(), &args));
    for (size_t r = 0; r < 2; ++r) {
      double largest = 0;
      for (size_t j = 0; j < 700; ++j)
        largest = std::max(largest, std::abs(expected[r * 700 + j]));
      for (size_t j = 0; j < 700; ++j)
        ASSERT_NEAR(static_cast<double>(scores[r * 704 + j]),
                    expected[r * 700 + j], 5e-6 * largest)
            << r << " " << j;
      for (size_t j = 700; j < 704; ++j)
        ASSERT_EQ(scores[r * 704 + j], untouched);
    }
  }
}

// One head sees key j as j % 5 - 2 in one dim; the scale is a power of two that
// differs from its neighbours'.
TEST(Score, IntegersThroughAPermutedTable) {
  auto options = small_options();
  const Opened candidate(options);
  const std::vector<int32_t> table = {3, 1, 9};
  constexpr int kKeys = 150;
  constexpr uint8_t kCodes[] = {0xC0, 0xB8, 0x00, 0x38, 0x40};  // -2 -1 0 1 2
  std::vector<uint8_t> cache(10 * 8448, 0x7F);
  std::vector<float> expected(kKeys);
  for (int j = 0; j < kKeys; ++j) {
    uint8_t* page =
        &cache[static_cast<size_t>(table[static_cast<size_t>(j / 64)]) * 8448];
    std::memset(page + j % 64 * 128, 0, 128);
    page[j % 64 * 128 + 77] = kCodes[j % 5];
    const float scale = std::ldexp(1.0f, -(j % 7));
    std::memcpy(page + 8192 + j % 64 * 4, &scale, 4);
    // Head 2 holds 3 in that dim and weighs -5, head 6 holds -4 and weighs 2.
    const float dot = static_cast<float>(j % 5 - 2);
    expected[static_cast<size_t>(j)] =
        scale * (-5 * std::max(0.0f, 3 * dot) + 2 * std::max(0.0f, -4 * dot));
  }
  std::vector<uint16_t> query(8 * 128, 0);
  query[2 * 128 + 77] = 0x4040;
  query[6 * 128 + 77] = 0xC080;
  std::vector<float> weights(8, 100.0f);
  weights[2] = -5;
  weights[6] = 2;
  const int32_t length = kKeys;
  std::vector<float> scores(kKeys);
  const xtk_score_args args{.struct_size = sizeof(args),
                            .arm = "base",
                            .rows = 1,
                            .index_query = query.data(),
                            .weights = weights.data(),
                            .cache = cache.data(),
                            .pages = 10,
                            .page_table = table.data(),
                            .table_width = 3,
                            .lengths = &length,
                            .scores = scores.data(),
                            .score_stride = kKeys};
  candidate.check(xtk_score(candidate.get(), &args));
  EXPECT_EQ(scores, expected);
}

}  // namespace
}  // namespace exact_topk::tests
