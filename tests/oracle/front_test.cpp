// SPDX-License-Identifier: Apache-2.0
#include "oracle/front.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "oracle/formats.h"
#include "oracle/plain.h"

namespace exact_topk::oracle {
namespace {

// 2^24 + 1 is no f32: each partial sum of 1 is lost in turn, which a sum in
// another order, or in f64, would not do.
TEST(HiddenState, RoundsEachSumInOrder) {
  const std::vector<float> residual = {0x1p24f, 1.0f};
  const std::vector<float> ones = {1.0f, 2.0f};
  const std::vector<std::span<const float>> partials = {ones, ones, ones};
  EXPECT_EQ(hidden_state(residual, partials),
            (std::vector<float>{0x1p24f, 7.0f}));
  EXPECT_EQ(hidden_state(residual, {}), residual);
}

TEST(HiddenState, RefusesAPartialOfAnotherSize) {
  const std::vector<float> residual = {1.0f, 2.0f}, partial = {1.0f};
  const std::vector<std::span<const float>> partials = {partial};
  EXPECT_THROW(hidden_state(residual, partials), std::invalid_argument);
}

// mean of squares of (3, 4, 0, 0) is 25/4; with eps 0 the factor is 2/5.
TEST(RmsNorm, ByHand) {
  const std::vector<float> v = {3, 4, 0, 0}, gamma = {1, 2, 3, 4};
  const std::vector<double> y = rms_norm(v, gamma, 0.0);
  EXPECT_DOUBLE_EQ(y[0], 1.2);
  EXPECT_DOUBLE_EQ(y[1], 3.2);
  EXPECT_EQ(y[2], 0.0);
  // eps 11/4 makes the mean 9: the factor is 1/3.
  const std::vector<double> wide(v.begin(), v.end());
  EXPECT_DOUBLE_EQ(rms_norm(wide, gamma, 2.75)[0], 1.0);
}

TEST(HeadWeightFactor, IsOneSixtyFourthForThirtyTwoHeads) {
  EXPECT_EQ(head_weight_factor(glm53()), 1.0 / 64);
  EXPECT_DOUBLE_EQ(head_weight_factor(dsv32()), 1.0 / std::sqrt(8192.0));
}

struct Product {
  int outputs, inputs, rows;
  std::vector<std::uint16_t> matrix, x;
  std::vector<float> matrix_f32;

  Product(int o, int i, int r) : outputs(o), inputs(i), rows(r) {
    std::mt19937 random(static_cast<unsigned>(o * i + r));
    std::normal_distribution<float> normal;
    for (int e = 0; e < o * i; ++e) {
      matrix.push_back(f32_to_bf16(normal(random)));
      matrix_f32.push_back(normal(random));
    }
    for (int e = 0; e < r * i; ++e) x.push_back(f32_to_bf16(normal(random)));
  }
  // Element [r][o] of the product of a matrix whose values `weight` gives, and
  // of the magnitudes of its terms.
  template <typename Weight>
  std::pair<long double, long double> exact(int r, int o, Weight weight) const {
    long double sum = 0, magnitudes = 0;
    for (int i = 0; i < inputs; ++i) {
      const long double term =
          weight(static_cast<std::size_t>(o * inputs + i)) *
          plain::bf16_value(x[static_cast<std::size_t>(r * inputs + i)]);
      sum += term;
      magnitudes += std::fabs(term);
    }
    return {sum, magnitudes};
  }
};

class Projection : public testing::TestWithParam<std::array<int, 3>> {};

TEST_P(Projection, IsTheSumOfExactProducts) {
  const auto [outputs, inputs, rows] = GetParam();
  const Product p(outputs, inputs, rows);
  const auto bf16 = project(p.matrix, outputs, inputs, p.x, rows);
  const auto f32 = project(p.matrix_f32, outputs, inputs, p.x, rows);
  const std::size_t size = static_cast<std::size_t>(rows * outputs);
  ASSERT_EQ(bf16.size(), size);
  ASSERT_EQ(f32.size(), size);
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < outputs; ++o) {
      const std::size_t at = static_cast<std::size_t>(r * outputs + o);
      const auto [sum, magnitude] = p.exact(
          r, o, [&](std::size_t i) { return plain::bf16_value(p.matrix[i]); });
      ASSERT_LE(std::fabs(bf16[at] - sum), inputs * 0x1p-53L * magnitude);
      const auto [sum32, magnitude32] = p.exact(
          r, o, [&](std::size_t i) -> long double { return p.matrix_f32[i]; });
      ASSERT_LE(std::fabs(f32[at] - sum32), inputs * 0x1p-53L * magnitude32);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Projection,
    testing::Values(std::array{1, 1, 1}, std::array{5, 7, 3},
                    std::array{32, 256, 1}, std::array{33, 1030, 8},
                    std::array{9, 6144, 4}, std::array{3, 96, 5}));

TEST(Projection, RangesTogetherAreTheWhole) {
  const Product p(37, 300, 3);
  const auto whole = project(p.matrix, 37, 300, p.x, 3);
  const int cuts[] = {0, 10, 10, 29, 37};
  for (int part = 0; part < 4; ++part) {
    const OutputRange range{cuts[part], cuts[part + 1]};
    const int width = range.end - range.begin;
    const auto some = project(p.matrix, 37, 300, p.x, 3, range);
    ASSERT_EQ(some.size(), static_cast<std::size_t>(3 * width));
    for (int r = 0; r < 3; ++r)
      for (int o = 0; o < width; ++o)
        EXPECT_DOUBLE_EQ(
            some[static_cast<std::size_t>(r * width + o)],
            whole[static_cast<std::size_t>(r * 37 + range.begin + o)]);
  }
}

TEST(Projection, RefusesWhatDoesNotFit) {
  const Product p(4, 6, 2);
  EXPECT_THROW(project(p.matrix, 5, 6, p.x, 2), std::invalid_argument);
  EXPECT_THROW(project(p.matrix, 4, 6, p.x, 3), std::invalid_argument);
  EXPECT_THROW(project(p.matrix, 4, 6, p.x, 2, {3, 5}), std::invalid_argument);
  EXPECT_THROW(project(p.matrix, 4, 6, p.x, 2, {3, 2}), std::invalid_argument);
}

}  // namespace
}  // namespace exact_topk::oracle
