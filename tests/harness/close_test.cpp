// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/close.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace exact_topk::harness {
namespace {

bool close(float got, double reference, double largest, Allowance allowance) {
  const std::vector<float> values{got, float(largest)};
  return close_fault(values, std::vector<double>{reference, largest}, allowance)
      .empty();
}

TEST(Close, Bf16UlpIsTheDistanceToTheNextCode) {
  EXPECT_EQ(bf16_ulp(1.0), 0x1p-7);
  EXPECT_EQ(bf16_ulp(-1.99), 0x1p-7);
  EXPECT_EQ(bf16_ulp(2.0), 0x1p-6);
  EXPECT_EQ(bf16_ulp(0x1p-126), 0x1p-133);
  EXPECT_EQ(bf16_ulp(0x1p-130), 0x1p-133);
  EXPECT_EQ(bf16_ulp(0.0), 0x1p-133);
}

TEST(Close, XMayBeOneUlpOff) {
  EXPECT_TRUE(close(1.0f + 0x1p-7f, 1.0, 1.0, kX));
  EXPECT_FALSE(close(1.0f + 0x1p-7f, 1.0 - 0x1p-20, 1.0, kX));
  // Codes: 0x3F80 is 1, 0x3F81 one ulp, 0x3F82 two.
  EXPECT_EQ(
      close_fault(std::vector<uint16_t>{0x3F81}, std::vector<double>{1.0}, kX),
      "");
  EXPECT_NE(
      close_fault(std::vector<uint16_t>{0x3F82}, std::vector<double>{1.0}, kX),
      "");
}

TEST(Close, QLoraMayBeOffByTheLargerOfUlpAndShareOfTheLargest) {
  // Near zero the share of the largest decides: 2e-5 * 4.
  EXPECT_TRUE(close(7.9e-5f, 0.0, 4.0, kQLora));
  EXPECT_FALSE(close(8.1e-5f, 0.0, 4.0, kQLora));
  // At 1 the ulp does.
  EXPECT_TRUE(close(1.0078125f, 1.0, 4.0, kQLora));
}

TEST(Close, ProjectionsMayBeOffByAShareOfTheLargest) {
  EXPECT_TRUE(close(1.0f + 2.9e-5f * 2, 1.0, 2.0, kProjected));
  EXPECT_FALSE(close(1.0f + 3.1e-5f * 2, 1.0, 2.0, kProjected));
}

TEST(Close, NothingThatIsNotFiniteIsClose) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(close(kNan, 1.0, 1.0, kX));
  EXPECT_FALSE(close(kInf, 1.0, 1.0, kProjected));
  EXPECT_FALSE(close(kInf, double{kInf}, 1.0, kProjected));
}

}  // namespace
}  // namespace exact_topk::harness
