// SPDX-License-Identifier: Apache-2.0
//
// Queries and keys against the unrounded reference, under every switch. That
// the bits are right is proven by the vectors; here it is proven that they are
// the bits of the right mathematics.
#include "oracle/stages.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "oracle/formats.h"
#include "oracle/plain.h"

namespace exact_topk::oracle {
namespace {

struct Table {
  std::vector<float> cos, sin;
  Table(std::int64_t position, double theta) {
    for (int i = 0; i < 32; ++i) {
      const double angle = double(position) * std::pow(theta, -2.0 * i / 64.0);
      cos.push_back(static_cast<float>(std::cos(angle)));
      sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  RopeRow row() const { return {cos, sin}; }
};

std::vector<float> normals(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// Every combination of the switches that change these stages.
std::vector<Geometry> geometries() {
  std::vector<Geometry> all;
  for (const Rope pairing : {Rope::kInterleaved, Rope::kHalfSplit}) {
    for (const bool hadamard : {true, false}) {
      for (const Scale scale : {Scale::kUe8m0, Scale::kF32}) {
        for (const Fp8 fp8 : {Fp8::kE4m3fn, Fp8::kE4m3fnuz}) {
          Geometry geometry = glm53();
          geometry.heads = 2;
          geometry.rope = pairing;
          geometry.hadamard = hadamard;
          geometry.scale = scale;
          geometry.fp8 = fp8;
          all.push_back(geometry);
        }
      }
    }
  }
  return all;
}

TEST(IndexQuery, IsTheRotatedMailboxInBf16) {
  const std::vector<float> mailbox = normals(256, 1);
  for (const Geometry& geometry : geometries()) {
    for (const std::int64_t position : {0, 1, 8447, 524287}) {
      const Table table(position, geometry.theta);
      const auto query = index_query(mailbox, table.row(), geometry);
      ASSERT_EQ(query.size(), 256u);
      for (std::size_t h = 0; h < 2; ++h) {
        const std::vector<long double> head(
            mailbox.begin() + std::ptrdiff_t(h * 128),
            mailbox.begin() + std::ptrdiff_t(h * 128 + 128));
        const auto exact = plain::rotate(head, position, geometry);
        for (std::size_t d = 0; d < 128; ++d) {
          const long double value = plain::bf16_value(query[h * 128 + d]);
          // Half a bf16 ulp, and the f32 roundings before it.
          ASSERT_NEAR(static_cast<double>(value), static_cast<double>(exact[d]),
                      std::fabs(static_cast<double>(exact[d])) * 0x1p-8 + 4e-6)
              << "head " << h << " dim " << d << " position " << position;
        }
      }
    }
  }
}

TEST(IndexKey, IsTheQuantisedKey) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const std::vector<float> raw = normals(128, 10 + seed);
    const std::vector<float> gamma = normals(128, 20 + seed);
    const std::vector<float> beta = normals(128, 30 + seed);
    for (const Geometry& geometry : geometries()) {
      const std::int64_t position = 1000 * seed + 7;
      const Table table(position, geometry.theta);
      const KeyStages stages =
          key_stages(raw, gamma, beta, table.row(), geometry);
      const auto exact = plain::key(raw, gamma, beta, position, geometry);
      long double amax = 0;
      for (std::size_t d = 0; d < 128; ++d) {
        ASSERT_NEAR(stages.key[d], static_cast<double>(exact[d]), 1e-5) << d;
        amax = std::fmax(amax, std::fabs(exact[d]));
      }
      const long double scale = plain::key_scale(amax, geometry);
      if (geometry.scale == Scale::kUe8m0)
        ASSERT_EQ(stages.cached.scale, scale);
      else
        ASSERT_NEAR(stages.cached.scale, static_cast<double>(scale),
                    static_cast<double>(scale) * 1e-5);
      // From the stage's own key and scale every byte is settled by a search.
      for (std::size_t d = 0; d < 128; ++d)
        ASSERT_EQ(
            stages.cached.bytes[d],
            plain::e4m3_code(stages.key[d] / stages.cached.scale, geometry.fp8))
            << d;
      ASSERT_EQ(index_key(raw, gamma, beta, table.row(), geometry),
                stages.cached);
    }
  }
}

// A constant key has no deviation: y is beta, rotated.
TEST(IndexKey, ConstantKeyLeavesBeta) {
  Geometry geometry = glm53();
  geometry.hadamard = false;
  const std::vector<float> raw(128, 3.0f), gamma(128, 5.0f);
  std::vector<float> beta(128, 0.0f);
  beta[100] = 7.0f;
  const Table table(0, geometry.theta);
  const KeyStages stages = key_stages(raw, gamma, beta, table.row(), geometry);
  EXPECT_EQ(stages.mean, 3.0f);
  EXPECT_EQ(stages.var, 0.0f);
  for (std::size_t d = 0; d < 128; ++d)
    EXPECT_EQ(stages.key[d], d == 100 ? 7.0f : 0.0f) << d;
  // 7 / 448 = 2^-6 exactly, so the largest code is used.
  EXPECT_EQ(stages.cached.scale, 0x1p-6f);
  EXPECT_EQ(stages.cached.bytes[100], 0x7E);
}

TEST(Quantise, ZeroKeyTakesTheFloorsScale) {
  Head key{};
  key[3] = -0.0f;
  const CachedKey cached = quantise(key, Scale::kUe8m0, Fp8::kE4m3fn);
  EXPECT_EQ(cached.scale, 0x1p-22f);
  for (std::size_t d = 0; d < 128; ++d)
    EXPECT_EQ(cached.bytes[d], d == 3 ? 0x80 : 0x00) << d;
}

// y / s and y * (1 / s) part only next to midpoints of codes, and only where s
// is no power of two: keys that lie there, and a proof that some of them tell.
TEST(Quantise, DividesByTheScale) {
  int telling = 0;
  for (int i = 1; i < 200; ++i) {
    const float amax = 1.0f + static_cast<float>(i) / 256;
    const float scale = amax / 448.0f;
    Head key{};
    key[0] = amax;
    for (std::size_t d = 1; d < 0x7E; ++d) {
      const auto code = static_cast<std::uint8_t>(d);
      const float middle =
          (e4m3_to_f32(code, Fp8::kE4m3fn) +
           e4m3_to_f32(static_cast<std::uint8_t>(d + 1), Fp8::kE4m3fn)) /
          2;
      key[d] = middle * scale;
    }
    const CachedKey cached = quantise(key, Scale::kF32, Fp8::kE4m3fn);
    ASSERT_EQ(cached.scale, scale);
    for (std::size_t d = 0; d < 128; ++d) {
      // A quotient of f32 values, rounded to f32 from more bits than it has.
      const double quotient = double{key[d]} / double{scale};
      const auto code =
          plain::e4m3_code(static_cast<float>(quotient), Fp8::kE4m3fn);
      ASSERT_EQ(cached.bytes[d], code) << "amax " << amax << " dim " << d;
      telling +=
          code != plain::e4m3_code(key[d] * (1.0f / scale), Fp8::kE4m3fn);
    }
  }
  EXPECT_GT(telling, 0);
}

// The transform of a unit vector is a row of the Hadamard matrix.
TEST(Hadamard, UnitVectorsGiveTheMatrix) {
  for (std::size_t i = 0; i < 128; ++i) {
    Head unit{};
    unit[i] = 1.0f;
    const Head row = hadamard_butterflies(unit);
    for (std::size_t j = 0; j < 128; ++j)
      ASSERT_EQ(row[j], std::popcount(i & j) % 2 == 0 ? 1.0f : -1.0f);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(hadamard_factor(row)[0]),
              0x3DB504F3u);
  }
}

// cos 0, sin 1 turns (a, b) into (-b, a); dims 64 and on stay.
TEST(Rope, PairsByItsLayout) {
  Head head;
  for (std::size_t d = 0; d < 128; ++d) head[d] = float(d + 1);
  const std::vector<float> cos(32, 0.0f), sin(32, 1.0f);
  const Head interleaved = rope(head, {cos, sin}, Rope::kInterleaved);
  EXPECT_EQ(interleaved[0], -2.0f);
  EXPECT_EQ(interleaved[1], 1.0f);
  EXPECT_EQ(interleaved[63], 63.0f);
  EXPECT_EQ(interleaved[64], 65.0f);
  const Head half = rope(head, {cos, sin}, Rope::kHalfSplit);
  EXPECT_EQ(half[0], -33.0f);
  EXPECT_EQ(half[32], 1.0f);
  EXPECT_EQ(half[63], 32.0f);
  EXPECT_EQ(half[127], 128.0f);
}

TEST(Stages, RefuseWrongSizes) {
  const std::vector<float> short_row(31), row(32), head(128);
  const Geometry geometry = glm53();
  EXPECT_THROW(index_query(head, {row, row}, geometry), std::invalid_argument);
  EXPECT_THROW(index_key(head, head, head, {short_row, row}, geometry),
               std::invalid_argument);
  EXPECT_THROW(index_key(row, head, head, {row, row}, geometry),
               std::invalid_argument);
}

TEST(Presets, AreThoseOfTheSpecification) {
  EXPECT_EQ(glm53().hidden, 6144);
  EXPECT_EQ(glm53().q_lora, 2048);
  EXPECT_EQ(glm53().heads, 32);
  EXPECT_EQ(glm53().k, 2048);
  EXPECT_EQ(glm53().theta, 8e6);
  EXPECT_EQ(glm51().theta, 1e6);
  EXPECT_EQ(dsv32().heads, 64);
  EXPECT_EQ(dsv32().hidden, 7168);
  EXPECT_EQ(dsv32().q_lora, 1536);
  EXPECT_EQ(dsv32().rope, Rope::kHalfSplit);
  EXPECT_EQ(dsv32().theta, 1e4);
}

}  // namespace
}  // namespace exact_topk::oracle
