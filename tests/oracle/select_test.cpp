// SPDX-License-Identifier: Apache-2.0
//
// Selection against a third way, a stable sort of the whole row, over every row
// of a tiny alphabet and over rows built to lie on the edges of the candidate
// room.
#include "oracle/select.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace exact_topk::oracle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// From lowest to highest by radix key.
const std::array<float, 8> kAlphabet = {-kNan, -kInfinity, -1.0f,     -0.0f,
                                        0.0f,  1.0f,       kInfinity, kNan};

// All positions, best first.
std::vector<std::int32_t> ranking(std::span<const float> scores) {
  std::vector<std::int32_t> positions(scores.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::ranges::stable_sort(positions, std::greater<>(), [&](std::int32_t p) {
    return radix_key(scores[static_cast<std::size_t>(p)]);
  });
  return positions;
}

// SPEC section 3 read out, with a sort in place of histograms.
BaseOrder sorted_base_order(std::span<const float> scores, int k) {
  const std::vector<std::int32_t> ranked = ranking(scores);
  const std::size_t m = std::min(scores.size(), static_cast<std::size_t>(k));
  const auto key = [&](std::int32_t p) {
    return radix_key(scores[static_cast<std::size_t>(p)]);
  };
  BaseOrder order;
  order.positions.assign(ranked.begin(), ranked.begin() + std::ptrdiff_t(m));
  std::ranges::sort(order.positions);
  if (m == 0) return order;
  order.threshold = key(ranked[m - 1]);
  order.ties = std::ranges::count_if(
      scores, [&](float s) { return radix_key(s) == order.threshold; });
  if (scores.size() <= m) return order;
  order.bits = 32;
  for (const int bits : {24, 12}) {
    const auto sharing = std::ranges::count_if(scores, [&](float s) {
      return radix_key(s) >> (32 - bits) == order.threshold >> (32 - bits);
    });
    if (sharing <= 4096) order.bits = bits;
  }
  const int shift = 32 - order.bits;
  const auto part = [&](std::int32_t p) {
    if (key(p) >> shift > order.threshold >> shift) return 0;
    return key(p) > order.threshold ? 1 : 2;
  };
  std::ranges::stable_sort(order.positions, {}, part);
  return order;
}

void expect_same(std::span<const float> scores, int k) {
  const BaseOrder actual = base_order(scores, k);
  const BaseOrder expected = sorted_base_order(scores, k);
  ASSERT_EQ(actual.positions, expected.positions) << "k " << k;
  ASSERT_EQ(actual.bits, expected.bits) << "k " << k;
  ASSERT_EQ(actual.threshold, expected.threshold) << "k " << k;
  ASSERT_EQ(actual.ties, expected.ties) << "k " << k;
  std::vector<std::int32_t> set = expected.positions;
  std::ranges::sort(set);
  ASSERT_EQ(exact_top_k(scores, k), set) << "k " << k;
}

float from_key(std::uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu
                                                       : ~key);
}

TEST(RadixKey, RanksTheAlphabet) {
  for (std::size_t i = 1; i < kAlphabet.size(); ++i)
    EXPECT_LT(radix_key(kAlphabet[i - 1]), radix_key(kAlphabet[i])) << i;
  EXPECT_EQ(radix_key(0.0f), 0x80000000u);
  EXPECT_EQ(radix_key(-0.0f), 0x7FFFFFFFu);
  EXPECT_EQ(radix_key(1.0f), 0xBF800000u);
  EXPECT_EQ(radix_key(-1.0f), 0x407FFFFFu);
}

// 8^0 + .. + 8^6 rows, each with every k up to one beyond its length.
TEST(Selection, EveryRowOfATinyAlphabet) {
  for (int length = 0; length <= 6; ++length) {
    const int rows = 1 << (3 * length);
    std::vector<float> scores(static_cast<std::size_t>(length));
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < length; ++i)
        scores[static_cast<std::size_t>(i)] =
            kAlphabet[static_cast<std::size_t>(row >> (3 * i) & 7)];
      // Base order allocates its histograms anew each time: a sample of the
      // longest rows is enough for it, the set is compared for all.
      const bool sample = length < 5 || row % 61 == 0;
      const std::vector<std::int32_t> ranked = ranking(scores);
      for (int k = 1; k <= length + 1; ++k) {
        if (sample) {
          expect_same(scores, k);
        } else {
          std::vector<std::int32_t> set(ranked.begin(),
                                        ranked.begin() + std::min(k, length));
          std::ranges::sort(set);
          ASSERT_EQ(exact_top_k(scores, k), set);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Selection, RefusesNoKeys) {
  const std::array<float, 2> scores = {1.0f, 2.0f};
  EXPECT_THROW(base_order(scores, 0), std::invalid_argument);
  EXPECT_THROW(exact_top_k(scores, -1), std::invalid_argument);
}

// Rows whose threshold's prefix of 12 or 24 bits is shared by a given number of
// keys, some of them winners, shuffled among winners and losers.
class CandidateRoom : public testing::TestWithParam<std::tuple<int, int, int>> {
};

TEST_P(CandidateRoom, StopsWhereItHolds) {
  const auto [bits, members, winners_above] = GetParam();
  std::mt19937 random(static_cast<unsigned>(members + bits));
  const int free_bits = 32 - bits;
  // One member in 16 is drawn from few values, so that ties cross the cut.
  std::vector<float> scores;
  const std::uint32_t prefix = 0xBF9ABCu >> (24 - bits);
  for (int i = 0; i < members; ++i) {
    std::uint32_t low = static_cast<std::uint32_t>(random());
    if (i % 16 == 0) low &= 3;
    scores.push_back(
        from_key(prefix << free_bits | (low & ((1u << free_bits) - 1))));
  }
  // With 24 bits more keys share 12, so that only 24 can stop.
  if (bits == 24)
    for (int i = 0; i < 5000; ++i)
      scores.push_back(from_key(0xBF900000u | (random() & 0xFFFFu)));
  for (int i = 0; i < winners_above; ++i)
    scores.push_back(from_key(0xC0000000u + (random() & 0xFFFFFFu)));
  for (int i = 0; i < 3000; ++i)
    scores.push_back(from_key(random() & 0x7FFFFFFFu));
  std::ranges::shuffle(scores, random);

  const BaseOrder order = base_order(scores, 2048);
  const int expected_bits = members <= 4096 ? bits : bits == 12 ? 24 : 32;
  EXPECT_EQ(order.bits, expected_bits);
  for (const int k : {2048, 1, winners_above + 1, winners_above + members})
    expect_same(scores, k);
}

INSTANTIATE_TEST_SUITE_P(Edges, CandidateRoom,
                         testing::Combine(testing::Values(12, 24),
                                          testing::Values(2048, 4095, 4096,
                                                          4097, 5000),
                                          testing::Values(0, 1, 889, 2047)));

TEST(Selection, PlateauLongerThanTheRoomGoesToTheLastBit) {
  std::vector<float> scores(8320, 0.0f);
  for (std::size_t i = 0; i < 100; ++i) scores[i * 83] = 1.0f + float(i);
  const BaseOrder order = base_order(scores, 2048);
  EXPECT_EQ(order.bits, 32);
  EXPECT_EQ(order.ties, 8220);
  EXPECT_EQ(order.positions[99], 99 * 83);
  EXPECT_EQ(order.positions[100], 1);
  expect_same(scores, 2048);
}

RC_GTEST_PROP(SelectionProperties, AnyBits, ()) {
  const auto bits = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
  std::vector<float> scores;
  for (const std::uint32_t u : bits) scores.push_back(std::bit_cast<float>(u));
  expect_same(scores, *rc::gen::inRange(1, 120));
}

// Few values: most cuts fall into a tie.
RC_GTEST_PROP(SelectionProperties, ManyDuplicates, ()) {
  const int n = *rc::gen::inRange(0, 12000);
  const unsigned values = *rc::gen::inRange(1u, 9u);
  const unsigned step = *rc::gen::element(1u, 1u << 8, 1u << 20);
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  std::vector<float> scores;
  for (int i = 0; i < n; ++i)
    scores.push_back(from_key(0x7FFFFFFEu + random() % values * step));
  expect_same(scores, *rc::gen::element(1, 2, 511, 2047, 2048, 2049, 12000));
}

// Rows of the lengths that a real launch has, seldom but whole.
RC_GTEST_PROP(SelectionProperties, LongRows, ()) {
  const int n = *rc::gen::inRange(1, 40000);
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  std::normal_distribution<float> normal(0.0f, *rc::gen::element(1.0f, 1e-42f));
  std::vector<float> scores;
  for (int i = 0; i < n; ++i) scores.push_back(std::max(normal(random), 0.0f));
  expect_same(scores, 2048);
}

}  // namespace
}  // namespace exact_topk::oracle
