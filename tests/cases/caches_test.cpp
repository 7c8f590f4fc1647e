// SPDX-License-Identifier: Apache-2.0
#include "cases/caches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "oracle/formats.h"
#include "oracle/select.h"
#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

using Key = std::array<uint8_t, 128>;

struct Token {
  Key bytes;
  float scale;
};

// A slot of a layer's cache, read by SPEC section 2 and, for preshuffled16,
// FACTS section 2.
Token token_at(const std::vector<uint8_t>& cache, int64_t slot,
               bool preshuffled = false) {
  const auto page = static_cast<size_t>(slot / 64 * 8448),
             offset = static_cast<size_t>(slot % 64);
  Token token;
  for (size_t d = 0; d < 128; ++d)
    token.bytes[d] =
        cache[page + (preshuffled ? offset / 16 * 2048 + d / 16 * 256 +
                                        offset % 16 * 16 + d % 16
                                  : offset * 128 + d)];
  std::memcpy(&token.scale, &cache[page + 8192 + 4 * offset], 4);
  return token;
}

struct Filled {
  Case c;
  Plan plan;
  std::vector<uint8_t> cache;
  // The key at a position of row 0's request.
  Token at(int64_t position) const {
    return token_at(
        cache,
        int64_t{plan.steps[0].page_table[static_cast<size_t>(position / 64)]} *
                64 +
            position % 64,
        c.geometry.page_layout == oracle::PageLayout::kPreshuffled16);
  }
};

Filled filled(const std::string& options, int launch = 0) {
  const Case c = case_of("--rows 2 --rowset chain --pos 999 " + options);
  const Plan plan = make_plan(c, 1);
  return {c, plan, all_of<uint8_t>(Input::kCache, c, plan, 1, launch)};
}

constexpr int64_t kCached =
    998;  // positions 998 and 999 are rows of the launch

TEST(Caches, UnownedMemoryIsNanScalesAnd7F) {
  for (const char* options :
       {"--cache random", "--cache zeros --page-layout preshuffled16"}) {
    const Filled f = filled(options);
    int64_t unowned = 0;
    for (int64_t slot = 0; slot < int64_t{f.plan.pages} * 64; ++slot) {
      if ((f.plan.page_states[static_cast<size_t>(slot / 64)].cached >>
               (slot % 64) &
           1) != 0)
        continue;
      ++unowned;
      const Token token = token_at(
          f.cache, slot,
          f.c.geometry.page_layout == oracle::PageLayout::kPreshuffled16);
      EXPECT_TRUE(std::isnan(token.scale));
      for (const uint8_t byte : token.bytes) EXPECT_EQ(byte, 0x7F);
    }
    EXPECT_EQ(unowned, int64_t{f.plan.pages} * 64 - kCached);
  }
}

TEST(Caches, RandomHasTheRangeOfAQuantisedKey) {
  for (const char* format : {"e4m3fn", "e4m3fnuz"}) {
    const Filled f = filled(std::string("--cache random --fp8 ") + format);
    const double half = f.c.geometry.fp8 == oracle::Fp8::kE4m3fn ? 1.0 : 0.5;
    double squares = 0;
    std::set<float> scales;
    std::set<Key> keys;
    for (int64_t p = 0; p < kCached; ++p) {
      const Token token = f.at(p);
      for (const uint8_t code : token.bytes) {
        const float value = oracle::e4m3_to_f32(code, f.c.geometry.fp8);
        ASSERT_FALSE(std::isnan(value));
        squares += double{value} * value;
      }
      keys.insert(token.bytes);
      scales.insert(token.scale);
      if (p > 0) {
        EXPECT_NE(token.scale, f.at(p - 1).scale) << p;
      }
    }
    EXPECT_NEAR(std::sqrt(squares / (kCached * 128)), 128 * half, 2);
    EXPECT_EQ(keys.size(), static_cast<size_t>(kCached));
    EXPECT_EQ(scales,
              (std::set<float>{0x1p-9f, 0x1p-8f, 0x1p-7f, 0x1p-6f, 0x1p-5f}));
  }
}

TEST(Caches, F32ScalesAreSpreadOverTheSameRange) {
  const Filled f = filled("--cache random --scale f32");
  std::set<float> scales;
  for (int64_t p = 0; p < kCached; ++p) {
    const float scale = f.at(p).scale;
    EXPECT_GE(scale, 0x1p-9f);
    EXPECT_LE(scale, 0x1p-5f);
    scales.insert(scale);
    if (p > 0) {
      EXPECT_NE(scale, f.at(p - 1).scale);
    }
  }
  EXPECT_GT(scales.size(), 700u);
}

TEST(Caches, LayersDiffer) {
  EXPECT_NE(filled("--cache random", 0).at(5).bytes,
            filled("--cache random", 1).at(5).bytes);
  EXPECT_EQ(filled("--cache random", 1).at(5).bytes,
            filled("--cache random", 1).at(5).bytes);
}

TEST(Caches, TiesRepeatFourKeysWithFourScales) {
  const Filled f = filled("--cache ties");
  std::set<Key> keys;
  std::set<float> scales;
  for (int64_t p = 0; p < kCached; ++p) {
    EXPECT_EQ(f.at(p).bytes, f.at(p % 4).bytes);
    EXPECT_EQ(f.at(p).scale, f.at(p % 4).scale);
    keys.insert(f.at(p).bytes);
    scales.insert(f.at(p).scale);
  }
  EXPECT_EQ(keys.size(), 4u);
  EXPECT_EQ(scales.size(), 4u);
}

// The quantiser's scale of a zero key: the floor 1e-4 over 448, raised to a
// power of two: 2^-22.
TEST(Caches, ZerosAreZero) {
  const Filled f = filled("--cache zeros");
  for (int64_t p = 0; p < kCached; ++p) {
    EXPECT_EQ(f.at(p).bytes, Key{});
    EXPECT_EQ(f.at(p).scale, 0x1p-22f);
  }
}

TEST(Caches, RecentIsRandomWithEightfoldScalesAtTheEnd) {
  const Case c = case_of("--rows 2 --rowset chain --pos 8447 --cache recent");
  const Plan plan = make_plan(c, 1);
  const Filled f{c, plan, all_of<uint8_t>(Input::kCache, c, plan)};
  std::set<float> early, late;
  for (int64_t p = 0; p < 8446; ++p)
    (p < 8446 - 4096 ? early : late).insert(f.at(p).scale);
  EXPECT_EQ(early,
            (std::set<float>{0x1p-9f, 0x1p-8f, 0x1p-7f, 0x1p-6f, 0x1p-5f}));
  EXPECT_EQ(late,
            (std::set<float>{0x1p-6f, 0x1p-5f, 0x1p-4f, 0x1p-3f, 0x1p-2f}));
}

// Codes of one sign are ordered as their values, so neighbours in value differ
// by one in rank.
int rank_of(uint8_t code) { return (code & 0x80) != 0 ? -(code & 0x7F) : code; }

TEST(Caches, NarrowMovesThreeOfTheLast32DimsByOneStep) {
  for (const char* format : {"e4m3fn", "e4m3fnuz"}) {
    const Filled f = filled(std::string("--cache narrow --fp8 ") + format);
    const double half = f.c.geometry.fp8 == oracle::Fp8::kE4m3fn ? 1.0 : 0.5;
    // The key all start from has each dim's most frequent code.
    std::array<std::map<uint8_t, int>, 128> seen;
    for (int64_t p = 0; p < kCached; ++p) {
      EXPECT_EQ(f.at(p).scale, 0x1p-7f);
      for (size_t d = 0; d < 128; ++d) ++seen[d][f.at(p).bytes[d]];
    }
    Key base;
    double wide = 0, fine = 0;
    for (size_t d = 0; d < 128; ++d) {
      base[d] =
          std::max_element(seen[d].begin(), seen[d].end(), [](auto a, auto b) {
            return a.second < b.second;
          })->first;
      const double value = oracle::e4m3_to_f32(base[d], f.c.geometry.fp8);
      (d < 96 ? wide : fine) += value * value;
      EXPECT_EQ(seen[d].size(), d < 96 ? 1u : 3u) << d;
    }
    EXPECT_NEAR(std::sqrt(wide / 96), 128 * half, 40 * half);
    EXPECT_NEAR(std::sqrt(fine / 32), 8 * half, 4 * half);
    for (int64_t p = 0; p < kCached; ++p) {
      int moved = 0;
      for (size_t d = 0; d < 128; ++d) {
        const int step = std::abs(rank_of(f.at(p).bytes[d]) - rank_of(base[d]));
        EXPECT_LE(step, 1);
        moved += step;
      }
      EXPECT_EQ(moved, 3) << p;
    }
  }
}

// SPEC section 5: in 145 of 148 simulated rows of n >= 6,336 the selection
// stops at 24 bits.
TEST(Caches, NarrowStopsAt24Bits) {
  constexpr int kHeads = 32, kKeys = 8448, kRows = 24;
  int stops = 0;
  for (int row = 0; row < kRows; ++row) {
    const Case c = case_of(
        "--stage score --rows 1 --rowset chain --cache narrow --pos 8447 --k " +
        std::to_string(2048 - row));
    const Plan plan = make_plan(c, 1);
    const Filled f{c, plan, all_of<uint8_t>(Input::kCache, c, plan)};
    const ScoreInputs inputs = score_inputs(c, 1);
    std::vector<float> query, scores;
    for (const uint16_t code : inputs.query)
      query.push_back(oracle::bf16_to_f32(code));
    for (int64_t p = 0; p < kKeys; ++p) {
      const Token token = f.at(p);
      std::array<float, 128> key;
      for (size_t d = 0; d < 128; ++d)
        key[d] = oracle::e4m3_to_f32(token.bytes[d], oracle::Fp8::kE4m3fn);
      float sum = 0;
      for (size_t h = 0; h < kHeads; ++h) {
        float dot = 0;
        for (size_t d = 0; d < 128; ++d) dot += query[h * 128 + d] * key[d];
        sum += inputs.weights[h] * std::max(dot, 0.0f);
      }
      scores.push_back(sum * token.scale);
    }
    stops += oracle::base_order(scores, 2048).bits == 24 ? 1 : 0;
  }
  EXPECT_GE(stops, kRows - 2);
}

TEST(Caches, UnknownNamesAreRefused) {
  EXPECT_EQ(sentence([] { cache("tied"); }), "no cache is named 'tied'");
}

}  // namespace
}  // namespace exact_topk::cases
