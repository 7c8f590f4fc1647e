// SPDX-License-Identifier: Apache-2.0
#include "oracle/scores.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "oracle/formats.h"
#include "oracle/pages.h"
#include "oracle/plain.h"

namespace exact_topk::oracle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows over one cache, owned here; rows() views them.
struct World {
  Geometry geometry;
  std::vector<std::uint8_t> cache;
  std::vector<std::vector<std::uint16_t>> queries;
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<std::int64_t> keys;
  std::mt19937 random;

  World(Geometry g, int pages, unsigned seed)
      : geometry(std::move(g)),
        cache(static_cast<std::size_t>(pages) * kPageBytes),
        random(seed) {
    std::normal_distribution<float> normal;
    for (std::int64_t slot = 0; slot < pages * 64; ++slot) {
      for (int d = 0; d < kHeadDim; ++d)
        key(slot, d) = f32_to_e4m3(100 * normal(random), geometry.fp8);
      set_scale(slot, std::ldexp(1.0f + float(slot % 64) / 64,
                                 -static_cast<int>(slot % 5) - 5));
    }
  }
  std::uint8_t& key(std::int64_t slot, int dim) {
    return cache[key_byte(slot, dim, geometry.page_layout)];
  }
  void set_scale(std::int64_t slot, float scale) {
    std::memcpy(&cache[scale_byte(slot)], &scale, sizeof scale);
  }
  // Pages outside every row: NaN bytes and scales.
  void unown(std::int32_t page) {
    std::memset(&cache[static_cast<std::size_t>(page) * kPageBytes],
                geometry.fp8 == Fp8::kE4m3fn ? 0x7F : 0x80, kPageBytes);
  }
  void add_row(std::vector<std::int32_t> table, std::int64_t n) {
    std::normal_distribution<float> normal;
    const std::size_t heads = static_cast<std::size_t>(geometry.heads);
    queries.emplace_back();
    for (std::size_t i = 0; i < heads * 128; ++i)
      queries.back().push_back(f32_to_bf16(normal(random)));
    weights.emplace_back();
    for (std::size_t i = 0; i < heads; ++i)
      weights.back().push_back(normal(random));
    tables.push_back(std::move(table));
    keys.push_back(n);
  }
  std::vector<ScoreRow> rows() const {
    std::vector<ScoreRow> views;
    for (std::size_t r = 0; r < keys.size(); ++r)
      views.push_back({queries[r], weights[r], tables[r], keys[r]});
    return views;
  }
  std::vector<RowScores> run(KeyRange range = {}) const {
    return scores(rows(), cache, geometry, range);
  }
  std::vector<long double> exact(std::size_t r) const {
    return plain::scores(queries[r], weights[r], tables[r], keys[r], cache,
                         geometry);
  }
};

void expect_exact(const World& world, const std::vector<RowScores>& actual) {
  ASSERT_EQ(actual.size(), world.keys.size());
  for (std::size_t r = 0; r < actual.size(); ++r) {
    const std::vector<long double> exact = world.exact(r);
    ASSERT_EQ(actual[r].value.size(), exact.size()) << "row " << r;
    ASSERT_EQ(actual[r].bound.size(), exact.size());
    ASSERT_EQ(actual[r].zero.size(), exact.size());
    long double largest = 0;
    for (const long double value : exact)
      largest = std::fmax(largest, std::fabs(value));
    EXPECT_NEAR(actual[r].largest, static_cast<double>(largest),
                static_cast<double>(largest) * 1e-14);
    for (std::size_t j = 0; j < exact.size(); ++j) {
      ASSERT_LE(std::fabs(actual[r].value[j] - exact[j]), 1e-13L * largest)
          << "row " << r << " key " << j;
      ASSERT_FALSE(actual[r].zero[j] != 0 && exact[j] != 0);
    }
  }
}

std::vector<std::int32_t> permuted(int first, int count, std::mt19937& random) {
  std::vector<std::int32_t> pages(static_cast<std::size_t>(count));
  std::iota(pages.begin(), pages.end(), first);
  std::ranges::shuffle(pages, random);
  return pages;
}

// Every geometry that changes a score.
TEST(Scores, EveryFormatLayoutAndHeadCount) {
  for (const Fp8 fp8 : {Fp8::kE4m3fn, Fp8::kE4m3fnuz}) {
    for (const PageLayout layout :
         {PageLayout::kPlain, PageLayout::kPreshuffled16}) {
      for (const int heads : {1, 3, 32, 64}) {
        Geometry geometry = glm53();
        geometry.fp8 = fp8;
        geometry.page_layout = layout;
        geometry.heads = heads;
        World world(geometry, 6, 7);
        world.unown(0);
        world.add_row(permuted(1, 5, world.random), 300);
        expect_exact(world, world.run());
      }
    }
  }
}

// Rows of one request, shared prefixes, rows apart, an empty row between, and
// every length around pages and blocks; tables go on with stale pages.
TEST(Scores, RowsThatShareSomePages) {
  World world(glm53(), 40, 8);
  world.unown(0);
  const auto request = permuted(1, 12, world.random);
  auto other = permuted(13, 12, world.random);
  world.add_row(request, 640);
  world.add_row(other, 257);
  std::copy_n(request.begin(), 3, other.begin());
  world.add_row(other, 500);
  world.add_row(request, 641);
  world.add_row(request, 0);
  world.add_row(request, 63);
  world.add_row({25, 26, 0, -1}, 128);
  world.add_row(request, 129);
  expect_exact(world, world.run());
}

TEST(Scores, EveryLengthAroundAPage) {
  World world(glm53(), 6, 9);
  world.unown(0);
  const auto table = permuted(1, 5, world.random);
  for (const std::int64_t n :
       {1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 320})
    world.add_row(table, n);
  expect_exact(world, world.run());
}

TEST(Scores, RangesTogetherAreTheWhole) {
  World world(glm53(), 12, 10);
  world.add_row(permuted(0, 12, world.random), 700);
  world.add_row(permuted(0, 12, world.random), 200);
  const std::vector<RowScores> whole = world.run();
  std::vector<RowScores> joined(2);
  const std::int64_t cuts[] = {0, 64, 192, 448, 10000};
  for (std::size_t part = 0; part < 4; ++part) {
    const std::vector<RowScores> some = world.run({cuts[part], cuts[part + 1]});
    for (std::size_t r = 0; r < 2; ++r) {
      joined[r].value.insert(joined[r].value.end(), some[r].value.begin(),
                             some[r].value.end());
      joined[r].largest = std::max(joined[r].largest, some[r].largest);
    }
  }
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_EQ(joined[r].value.size(), whole[r].value.size());
    EXPECT_NEAR(joined[r].largest, whole[r].largest, 1e-13 * whole[r].largest);
    for (std::size_t j = 0; j < whole[r].value.size(); ++j)
      ASSERT_NEAR(joined[r].value[j], whole[r].value[j],
                  1e-13 * whole[r].largest);
  }
}

// One head, one key, numbers small enough for a head count.
struct OneTerm {
  World world;
  OneTerm()
      : world(
            [] {
              Geometry geometry = glm53();
              geometry.heads = 2;
              return geometry;
            }(),
            1, 1) {
    std::memset(world.cache.data(), 0, 8192);
    for (int slot = 0; slot < 64; ++slot) world.set_scale(slot, 0.5f);
    world.add_row({0}, 2);
    std::ranges::fill(world.queries[0], f32_to_bf16(0.0f));
    std::ranges::fill(world.weights[0], 0.0f);
    // q_0 . k_0 = 3 * 2 = 6; key 1 is zero.
    world.queries[0][5] = f32_to_bf16(3.0f);
    world.key(0, 5) = f32_to_e4m3(2.0f, Fp8::kE4m3fn);
    world.weights[0][0] = -4.0f;
  }
};

TEST(Scores, OneTermByHand) {
  OneTerm one;
  const RowScores row = one.world.run().at(0);
  EXPECT_EQ(row.value, (std::vector<double>{-12.0, 0.0}));
  EXPECT_EQ(row.zero, (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(row.largest, 12.0);
}

// Errors are measured against the largest score, or, in a row whose scores
// cancel further than f32 can follow, against a part of their terms.
TEST(Scores, LargestKeepsAPartOfWhatCancels) {
  OneTerm row;
  row.world.queries[0][128 + 5] = f32_to_bf16(3.0f);
  row.world.weights[0][1] = 3.875f;
  // (-4 + 3.875) * 6 * 0.5 of terms (4 + 3.875) * 6 * 0.5: a 63rd is left.
  EXPECT_EQ(row.world.run()[0].value[0], -0.375);
  EXPECT_EQ(row.world.run()[0].largest, 0.375);
  row.world.weights[0][1] = 3.96875f;
  // A 255th is left.
  EXPECT_EQ(row.world.run()[0].value[0], -0.09375);
  EXPECT_EQ(row.world.run()[0].largest, (4 + 3.96875) * 6 * 0.5 / 128);
}

// Terms that cancel are still terms; a zero weight, a negative product and a
// zero scale are none.
TEST(Scores, ZeroMeansNoNonzeroTerm) {
  OneTerm cancelling;
  cancelling.world.queries[0][128 + 5] = f32_to_bf16(3.0f);
  cancelling.world.weights[0][1] = 4.0f;
  EXPECT_EQ(cancelling.world.run()[0].value[0], 0.0);
  EXPECT_EQ(cancelling.world.run()[0].zero[0], 0);

  OneTerm weightless;
  weightless.world.weights[0][0] = -0.0f;
  EXPECT_EQ(weightless.world.run()[0].zero[0], 1);

  OneTerm negative;
  negative.world.queries[0][5] = f32_to_bf16(-3.0f);
  EXPECT_EQ(negative.world.run()[0].value[0], 0.0);
  EXPECT_EQ(negative.world.run()[0].zero[0], 1);

  OneTerm scaleless;
  scaleless.world.set_scale(0, 0.0f);
  EXPECT_EQ(scaleless.world.run()[0].zero[0], 1);

  // The smallest numbers of every format are no zero.
  OneTerm tiny;
  tiny.world.queries[0][5] = 1;
  tiny.world.key(0, 5) = 1;
  tiny.world.weights[0][0] = 0x1p-149f;
  tiny.world.set_scale(0, 0x1p-149f);
  EXPECT_EQ(tiny.world.run()[0].value[0], std::ldexp(1.0, -133 - 9 - 298));
  EXPECT_EQ(tiny.world.run()[0].zero[0], 0);
}

TEST(Scores, NanAndInfinityGoWhereTheFormulaSendsThem) {
  OneTerm nan_key;  // relu(NaN) is +0
  nan_key.world.key(0, 7) = 0x7F;
  EXPECT_EQ(nan_key.world.run()[0].value[0], 0.0);
  EXPECT_EQ(nan_key.world.run()[0].zero[0], 1);

  OneTerm nan_query;
  nan_query.world.queries[0][5] = f32_to_bf16(kNan);
  EXPECT_EQ(nan_query.world.run()[0].value[0], 0.0);

  OneTerm infinite_query;
  infinite_query.world.queries[0][5] = f32_to_bf16(kInfinity);
  EXPECT_EQ(infinite_query.world.run()[0].value[0], -kInfinity);
  // Key 1 is zero: infinity * 0 is NaN, which relu turns into +0.
  EXPECT_EQ(infinite_query.world.run()[0].value[1], 0.0);

  OneTerm nan_weight;
  nan_weight.world.weights[0][1] = kNan;
  EXPECT_TRUE(std::isnan(nan_weight.world.run()[0].value[1]));
  EXPECT_EQ(nan_weight.world.run()[0].zero[1], 0);

  OneTerm infinite_weight;  // infinity * relu(0)
  infinite_weight.world.weights[0][1] = kInfinity;
  EXPECT_TRUE(std::isnan(infinite_weight.world.run()[0].value[1]));

  OneTerm nan_scale;
  nan_scale.world.set_scale(0, kNan);
  const RowScores row = nan_scale.world.run()[0];
  EXPECT_TRUE(std::isnan(row.value[0]));
  EXPECT_EQ(row.zero[0], 0);
  EXPECT_EQ(row.largest, 0.0);
  nan_scale.world.set_scale(0, -kInfinity);
  EXPECT_EQ(nan_scale.world.run()[0].value[0], kInfinity);
}

TEST(Scores, RefusesWhatDoesNotFit) {
  const auto with = [](auto&& change) {
    World world(glm53(), 2, 1);
    world.add_row({0, 1}, 100);
    change(world);
    return world;
  };
  EXPECT_NO_THROW(with([](World&) {}).run());
  EXPECT_THROW(with([](World& w) { w.tables[0][1] = 2; }).run(),
               std::invalid_argument);
  EXPECT_THROW(with([](World& w) { w.tables[0][0] = -1; }).run(),
               std::invalid_argument);
  EXPECT_THROW(with([](World& w) { w.keys[0] = 129; }).run(),
               std::invalid_argument);
  EXPECT_THROW(with([](World& w) { w.keys[0] = -1; }).run(),
               std::invalid_argument);
  EXPECT_THROW(with([](World& w) { w.weights[0].pop_back(); }).run(),
               std::invalid_argument);
  EXPECT_THROW(with([](World& w) { w.queries[0].pop_back(); }).run(),
               std::invalid_argument);
  EXPECT_THROW(with([](World&) {}).run({32, 64}), std::invalid_argument);
}

// ---------------------------------------------------------------------------
// The bound: f32 in random orders must stay within it.

// A sum in a random order, as a chain or as a random tree.
float shuffled_sum(std::vector<float> terms, std::mt19937& random) {
  while (terms.size() > 1) {
    const std::size_t a = random() % terms.size();
    std::swap(terms[a], terms.back());
    const float last = terms.back();
    terms.pop_back();
    terms[random() % terms.size()] += last;
  }
  return terms[0];
}

float chained_fma(const std::vector<float>& a, const std::vector<float>& b,
                  std::mt19937& random) {
  std::vector<std::size_t> order(a.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, random);
  float sum = 0.0f;
  for (const std::size_t i : order) sum = std::fma(a[i], b[i], sum);
  return sum;
}

float any_dot(const std::vector<float>& a, const std::vector<float>& b,
              std::mt19937& random) {
  if (random() % 2 == 0) return chained_fma(a, b, random);
  std::vector<float> products(a.size());
  std::ranges::transform(a, b, products.begin(), std::multiplies<>());
  return shuffled_sum(std::move(products), random);
}

float f32_score(const World& world, std::int64_t j, std::mt19937& random) {
  const std::int64_t slot = slot_of(world.tables[0], j);
  std::vector<float> key(128);
  for (int d = 0; d < 128; ++d)
    key[static_cast<std::size_t>(d)] =
        e4m3_to_f32(world.cache[key_byte(slot, d, world.geometry.page_layout)],
                    world.geometry.fp8);
  std::vector<float> activations;
  for (std::size_t h = 0; h < world.weights[0].size(); ++h) {
    std::vector<float> query(128);
    for (std::size_t d = 0; d < 128; ++d)
      query[d] = bf16_to_f32(world.queries[0][h * 128 + d]);
    const float dot = any_dot(query, key, random);
    activations.push_back(dot > 0 ? dot : 0.0f);
  }
  float scale;
  std::memcpy(&scale, &world.cache[scale_byte(slot)], sizeof scale);
  return any_dot(world.weights[0], activations, random) * scale;
}

// The largest error over the bound that some arrangements of one world show.
double worst_ratio(World& world, int rounds) {
  const RowScores row = world.run()[0];
  double worst = 0.0;
  for (int round = 0; round < rounds; ++round)
    for (std::int64_t j = 0; j < world.keys[0]; ++j) {
      const std::size_t at = static_cast<std::size_t>(j);
      const double error =
          std::fabs(double{f32_score(world, j, world.random)} - row.value[at]);
      worst = std::max(worst, error / double{row.bound[at]});
    }
  return worst;
}

RC_GTEST_PROP(ScoreBound, HoldsInEveryOrder, ()) {
  Geometry geometry = glm53();
  geometry.heads = *rc::gen::element(1, 32);
  World world(geometry, 1, *rc::gen::arbitrary<unsigned>());
  world.add_row({0}, 8);
  // Magnitudes from far below the subnormals of f32 to large ones.
  const int query_exponent = *rc::gen::inRange(-140, 30);
  const int weight_exponent = *rc::gen::inRange(-150, 30);
  const int scale_exponent = *rc::gen::inRange(-149, 20);
  const int mode = *rc::gen::inRange(0, 3);
  for (std::uint16_t& code : world.queries[0]) {
    // All of a size; of one sign, so that sums only grow; or of many sizes.
    float value = std::ldexp(bf16_to_f32(code), query_exponent);
    if (mode == 1) value = std::fabs(value);
    if (mode == 2)
      value = std::ldexp(value, -static_cast<int>(world.random() % 24));
    code = f32_to_bf16(value);
  }
  for (float& weight : world.weights[0])
    weight = std::ldexp(weight, weight_exponent);
  for (int slot = 0; slot < 8; ++slot)
    world.set_scale(slot, std::ldexp(1.25f, scale_exponent));
  RC_ASSERT(worst_ratio(world, 2) <= 1.0);
}

// It is a bound and no blank cheque. Errors of random terms walk instead of
// adding up: about u |q| |k| / 4 a dot where the bound has 127 u |q| |k|, and
// the square root of 32 less over the heads, together some 1/3000 of it.
TEST(ScoreBound, IsNotFarFromRealErrors) {
  World world(glm53(), 1, 3);
  world.add_row({0}, 64);
  const double worst = worst_ratio(world, 8);
  EXPECT_LE(worst, 1.0);
  EXPECT_GE(worst, 1e-4);
}

// By hand, where all terms are exact: |q| |k| = 6, |w| = 4, scale 1/2, so that
// the dot may lose 127 u * 6 and what follows 3 u of |w| * relu = 24.
TEST(ScoreBound, ByHand) {
  OneTerm one;
  const double u = std::ldexp(1.0, -24);
  const double expected = 0.5 * (4 * 127 * u * 6 + 3 * u * 24);
  const float bound = one.world.run()[0].bound[0];
  EXPECT_GE(bound, expected);
  EXPECT_LE(bound, expected * 1.0001);
}

}  // namespace
}  // namespace exact_topk::oracle
