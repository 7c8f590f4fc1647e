// SPDX-License-Identifier: Apache-2.0
#include "cases/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace exact_topk::cases {
namespace {

// Philox4x32-10 from its paper (Salmon et al., 2011).
Words4 philox(Words4 counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0],
                   b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

TEST(Generator, PhiloxOfThePaperGivesItsKnownAnswer) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words4{0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}));
}

TEST(Generator, StreamIsPhiloxOfSeedBlockAndName) {
  EXPECT_EQ(fnv1a(""), 0xCBF29CE484222325u);
  EXPECT_EQ(fnv1a("a"), 0xAF63DC4C8601EC8Cu);
  const Stream stream(0x1122334455667788u, "a");
  EXPECT_EQ(stream.block(0x900000007u), philox({7, 9, 0x8601EC8Cu, 0xAF63DC4Cu},
                                               {0x55667788u, 0x11223344u}));
  EXPECT_EQ(stream.word(30), stream.block(7)[2]);
}

TEST(Generator, ByteSumAddsFourBytes) {
  EXPECT_EQ(byte_sum(0), 0);
  EXPECT_EQ(byte_sum(0xFFFFFFFFu), 1020);
  EXPECT_EQ(byte_sum(0x01020304u), 10);
}

// Variance of a sum of four uniforms on m values: 4 (m^2 - 1) / 12.
TEST(Generator, NormalsHaveMeanZeroAndDeviationOne) {
  EXPECT_EQ(byte_normal(510), 0.0f);
  EXPECT_EQ(byte_normal(0), -byte_normal(1020));
  EXPECT_NEAR(byte_normal(511) * std::sqrt(4 * (256.0 * 256 - 1) / 12), 1.0,
              1e-6);
  EXPECT_EQ(fine_normal({0, 0, 0xFFFFFFFFu, 0xFFFFFFFFu}, 0),
            -fine_normal({0, 0, 0xFFFFFFFFu, 0xFFFFFFFFu}, 1));
  // 65535 + 65535 + 1 is the mean, 131070, and one more.
  EXPECT_NEAR(fine_normal({0xFFFFFFFFu, 1, 0, 0}, 0) *
                  std::sqrt(4 * (65536.0 * 65536 - 1) / 12),
              1.0, 1e-6);
  double sum = 0, squares = 0;
  const Stream stream(3, "moments");
  std::vector<float> values(100000);
  generate<2>(stream, 0, std::span(values), [](const Words4& words, int lane) {
    return fine_normal(words, lane);
  });
  for (const float x : values) sum += x, squares += double{x} * x;
  EXPECT_NEAR(sum / 1e5, 0, 0.015);  // 4.7 deviations of the mean
  EXPECT_NEAR(squares / 1e5, 1, 0.015);
}

TEST(Generator, AnyRangeGivesTheSameElements) {
  const Stream stream(5, "range");
  const auto make = [](const Words4& words, int lane) {
    return words[static_cast<size_t>(lane)];
  };
  std::vector<uint32_t> all(64);
  generate<4>(stream, 0, std::span(all), make);
  for (int64_t begin = 0; begin < 12; ++begin) {
    for (int64_t end = begin; end < 24; ++end) {
      std::vector<uint32_t> part(static_cast<size_t>(end - begin));
      generate<4>(stream, begin, std::span(part), make);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin))
          << begin << " " << end;
    }
  }
  EXPECT_EQ(all[9], stream.block(2)[1]);
}

TEST(Generator, PermutationHoldsEveryNumberOnceAndDependsOnTheSeed) {
  const auto a = permutation(Stream(1, "p"), 1000),
             b = permutation(Stream(2, "p"), 1000);
  EXPECT_EQ(std::set<int32_t>(a.begin(), a.end()).size(), 1000u);
  EXPECT_EQ(*std::min_element(a.begin(), a.end()), 0);
  EXPECT_EQ(*std::max_element(a.begin(), a.end()), 999);
  EXPECT_NE(a, b);
  EXPECT_FALSE(std::is_sorted(a.begin(), a.end()));
}

}  // namespace
}  // namespace exact_topk::cases
