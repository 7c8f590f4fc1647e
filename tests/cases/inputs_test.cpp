// SPDX-License-Identifier: Apache-2.0
#include "cases/inputs.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <set>

#include "cases/order.h"
#include "oracle/formats.h"
#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

// A geometry small enough to make every tensor whole.
Case small_case(Kind kind = Kind::kIndex, int64_t pos = 300) {
  Case c;
  c.kind = kind;
  c.pos = pos;
  c.rowset = "mixed";
  c.geometry.hidden = 128;
  c.geometry.q_lora = 64;
  c.geometry.heads = 8;
  return c;
}

std::vector<Input> inputs_of(const Case& c) {
  std::vector<Input> result;
  for (int i = 0; i < kInputs; ++i)
    if (used(Input(i), c)) result.push_back(Input(i));
  return result;
}

TEST(Inputs, EachKindAndStageHasItsOwn) {
  EXPECT_EQ(inputs_of(small_case()).size(),
            18u);  // all but embedding and tokens
  EXPECT_TRUE(used(Input::kEmbedding, small_case(Kind::kEmbed)));
  EXPECT_TRUE(used(Input::kTokens, small_case(Kind::kEmbed)));
  EXPECT_FALSE(used(Input::kResidual, small_case(Kind::kEmbed)));
  EXPECT_FALSE(used(Input::kPartials, small_case(Kind::kEmbed)));
  EXPECT_EQ(inputs_of(small_case(Kind::kDense)).size(), 18u);
  EXPECT_EQ(
      inputs_of(case_of("--stage score --rows 2 --cache ties --rowset chain")),
      (std::vector<Input>{Input::kCache, Input::kRequests, Input::kPositions,
                          Input::kPageTable}));
  EXPECT_TRUE(
      inputs_of(case_of("--stage select --rows 2 --rows-from rising")).empty());
}

TEST(Inputs, OfTheModelsOrderAreThoseOfEachLaunchsKind) {
  Case c = small_case();
  c.order = "model";
  c.launches = 21;
  std::vector<Kind> kinds(21, Kind::kIndex);
  kinds[0] = Kind::kEmbed;
  kinds[1] = kinds[2] = Kind::kDense;
  for (int launch = 0; launch < 21; ++launch)
    EXPECT_EQ(kind_of(c, launch), kinds[size_t(launch)]) << launch;
  EXPECT_EQ(inputs_of(c).size(), 20u);
  const Plan plan = make_plan(c, 1);
  EXPECT_EQ(info(Input::kPartials, c, plan).shape,
            (std::vector<int64_t>{8, 4, 128}));
  const auto weights = [&](const Case& of, int launch) {
    return all_of<uint16_t>(Input::kQA, of, plan, 1, launch);
  };
  EXPECT_EQ(weights(c, 0), weights(small_case(Kind::kEmbed), 0));
  EXPECT_EQ(weights(c, 2), weights(small_case(Kind::kDense), 2));
  EXPECT_EQ(weights(c, 3), weights(small_case(Kind::kIndex), 3));
  const auto residual = [&](int launch, int step) {
    return all_of<float>(Input::kResidual, c, plan, 1, launch, step);
  };
  EXPECT_EQ(residual(20, 1), residual(1, 1));
  EXPECT_NE(residual(1, 0), residual(1, 1));
  c.launches = 1;
  EXPECT_FALSE(used(Input::kPartials, c));
}

TEST(Inputs, ShapesAreThoseOfTheAbi) {
  const Case c = small_case();
  const Plan plan = make_plan(c, 1);
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(info(Input::kQA, c, plan).shape, (Shape{64, 128}));
  EXPECT_EQ(info(Input::kWqB, c, plan).shape, (Shape{8 * 128, 64}));
  EXPECT_EQ(info(Input::kWk, c, plan).shape, (Shape{128, 128}));
  EXPECT_EQ(info(Input::kWeightsProj, c, plan).shape, (Shape{8, 128}));
  EXPECT_EQ(info(Input::kPartials, c, plan).shape, (Shape{8, 4, 128}));
  EXPECT_EQ(info(Input::kPartials, small_case(Kind::kDense), plan).shape,
            (Shape{1, 4, 128}));
  EXPECT_EQ(info(Input::kCache, c, plan).shape, (Shape{plan.pages, 8448}));
  EXPECT_EQ(info(Input::kRopeCos, c, plan).shape,
            (Shape{302, 32}));  // the last step ends at position 301
  EXPECT_EQ(info(Input::kWqB, c, plan).bytes, 2u * 8 * 128 * 64);
  EXPECT_EQ(info(Input::kWqB, c, plan).name, "wq_b");
}

TEST(Inputs, AnyRangeGivesTheSameBytes) {
  const bool held = rc::check("two parts make the whole", [] {
    const Case c =
        small_case(*rc::gen::element(Kind::kIndex, Kind::kEmbed), 100);
    const Plan plan = make_plan(c, 3);
    const Input input = *rc::gen::elementOf(inputs_of(c));
    const InputInfo about = info(input, c, plan);
    const int64_t from = *rc::gen::inRange<int64_t>(0, about.elements() + 1);
    const int64_t to = *rc::gen::inRange<int64_t>(from, about.elements() + 1);
    const std::vector<uint8_t> whole = all_of<uint8_t>(input, c, plan, 3, 1, 1);
    const int64_t size = element_bytes(about.dtype);
    std::vector<std::byte> part(static_cast<size_t>((to - from) * size));
    fill(input, c, plan, 3, 1, 1, from, to, part);
    RC_ASSERT(
        std::memcmp(part.data(), whole.data() + from * size, part.size()) == 0);
  });
  EXPECT_TRUE(held);
}

TEST(Inputs, ARangeThatDoesNotFitIsRefused) {
  const Case c = small_case();
  const Plan plan = make_plan(c, 1);
  std::vector<std::byte> out(4);
  EXPECT_EQ(
      sentence([&] { fill(Input::kQGamma, c, plan, 1, 0, 0, 64, 65, out); }),
      "elements 64 to 65 of q_gamma, which has 64, do not fit 4 bytes");
  EXPECT_EQ(
      sentence([&] { fill(Input::kQGamma, c, plan, 1, 0, 0, 1, 3, out); }),
      "elements 1 to 3 of q_gamma, which has 64, do not fit 4 bytes");
}

TEST(Inputs, WeightsDependOnSeedSizesKindAndLayerAlone) {
  const Case c = small_case();
  Case other = small_case(Kind::kIndex, 77);
  other.cache = "ties";
  other.tp = 4;
  const Plan plan = make_plan(c, 1), other_plan = make_plan(other, 1);
  const auto weights = [](const Case& of, const Plan& p, uint64_t seed,
                          int launch) {
    return all_of<uint16_t>(Input::kQA, of, p, seed, launch);
  };
  EXPECT_EQ(weights(c, plan, 1, 0), weights(other, other_plan, 1, 0));
  EXPECT_NE(weights(c, plan, 1, 0), weights(c, plan, 1, 1));
  EXPECT_NE(weights(c, plan, 1, 0), weights(c, plan, 2, 0));
  EXPECT_NE(weights(c, plan, 1, 0),
            weights(small_case(Kind::kDense), plan, 1, 0));
}

TEST(Inputs, RowsDependOnTheCaseLaunchAndStepButNotOnT) {
  const Case c = small_case();
  Case four = c;
  four.tp = 4;
  const Plan plan = make_plan(c, 1);
  const auto residual = [&](const Case& of, int launch, int step) {
    return all_of<float>(Input::kResidual, of, plan, 1, launch, step);
  };
  EXPECT_EQ(residual(c, 0, 0), residual(four, 0, 0));
  EXPECT_NE(residual(c, 0, 0), residual(c, 1, 0));
  EXPECT_NE(residual(c, 0, 0), residual(c, 0, 1));
  EXPECT_NE(residual(c, 0, 0), residual(small_case(Kind::kIndex, 301), 0, 0));
  // The first four partial sums of eight are the four of T = 4.
  auto eight_sums = all_of<float>(Input::kPartials, c, plan);
  eight_sums.resize(eight_sums.size() / 2);
  EXPECT_EQ(eight_sums, all_of<float>(Input::kPartials, four, plan));
}

double deviation(const std::vector<float>& values) {
  double squares = 0;
  for (const float v : values) squares += double{v} * v;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(Inputs, ValuesHaveTheirScales) {
  const Case c = small_case();
  const Plan plan = make_plan(c, 1);
  std::vector<float> q_a;
  for (const uint16_t code : all_of<uint16_t>(Input::kQA, c, plan))
    q_a.push_back(oracle::bf16_to_f32(code));
  EXPECT_NEAR(deviation(q_a) * std::sqrt(128.0), 1.0, 0.03);
  EXPECT_NEAR(
      deviation(all_of<float>(Input::kWeightsProj, c, plan)) * std::sqrt(128.0),
      1.0, 0.1);
  auto residual = all_of<float>(Input::kResidual, c, plan),
       partials = all_of<float>(Input::kPartials, c, plan);
  // One in 32 of the residual is carried to -2^20, and back by the first of the
  // partial sums.
  for (size_t i = 7; i < residual.size(); i += 32) {
    EXPECT_NEAR(residual[i], -0x1p20f, 10.0f);
    EXPECT_NEAR(partials[i], 0x1p20f, 3.0f);
    residual[i] += 0x1p20f;
    partials[i] -= 0x1p20f;
  }
  EXPECT_NEAR(deviation(partials), 0.25, 0.02);
  EXPECT_NEAR(deviation(residual), 1.0, 0.15);
  for (const float gamma : all_of<float>(Input::kInputGamma, c, plan))
    EXPECT_NEAR(gamma, 1.0f, 0.35f);
  for (const float beta : all_of<float>(Input::kKBeta, c, plan))
    EXPECT_NEAR(beta, 0.0f, 0.35f);
  const auto k_gamma = all_of<float>(Input::kKGamma, c, plan);
  for (size_t dim = 0; dim < k_gamma.size(); ++dim)
    EXPECT_NEAR(k_gamma[dim] * (dim % 16 == 9 ? 0x1p14f : 1.0f), 1.0f, 0.35f);
}

TEST(Inputs, RopeTableIsSpecSection3) {
  const Case c = small_case();
  const Plan plan = make_plan(c, 1);
  const auto cosines = all_of<float>(Input::kRopeCos, c, plan),
             sines = all_of<float>(Input::kRopeSin, c, plan);
  EXPECT_EQ(cosines[0], 1.0f);
  EXPECT_EQ(sines[0], 0.0f);
  EXPECT_EQ(cosines[32], static_cast<float>(std::cos(1.0)));  // p = 1, i = 0
  EXPECT_EQ(sines[300 * 32 + 5],
            static_cast<float>(std::sin(300.0 * std::pow(8e6, -10.0 / 64.0))));
}

TEST(Inputs, IntegersAreThePlans) {
  const Case c = small_case(Kind::kEmbed);
  const Plan plan = make_plan(c, 1);
  EXPECT_EQ(all_of<int32_t>(Input::kPositions, c, plan),
            (std::vector<int32_t>{300, 300, 225, 300}));
  EXPECT_EQ(all_of<int32_t>(Input::kPositions, c, plan, 1, 0, 1),
            (std::vector<int32_t>{301, 301, 226, 301}));
  EXPECT_EQ(all_of<int32_t>(Input::kRequests, c, plan),
            (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(all_of<int32_t>(Input::kPageTable, c, plan, 1, 0, 1),
            plan.steps[1].page_table);
  EXPECT_EQ(all_of<int32_t>(Input::kIndptr, c, plan, 1, 0, 1),
            plan.steps[1].indptr);
  EXPECT_EQ(all_of<int32_t>(Input::kSlots, c, plan)[2],
            plan.steps[0].rows[2].slot);
  for (const int32_t token : all_of<int32_t>(Input::kTokens, c, plan)) {
    EXPECT_GE(token, 0);
    EXPECT_LT(token, kVocabulary);
  }
  Case padded = small_case();
  padded.rowset = "padded";
  const Plan with_pads = make_plan(padded, 1);
  EXPECT_EQ(all_of<int32_t>(Input::kPositions, padded, with_pads),
            (std::vector<int32_t>{300, 150, -1, -1}));
  EXPECT_EQ(all_of<int32_t>(Input::kSlots, padded, with_pads)[3], -1);
  EXPECT_EQ(all_of<int32_t>(Input::kRequests, padded, with_pads)[2], -1);
}

TEST(Inputs, PoisonIsFiniteAndNewAtEachAttempt) {
  for (const oracle::Fp8 format :
       {oracle::Fp8::kE4m3fn, oracle::Fp8::kE4m3fnuz}) {
    Case c = small_case();
    c.rows = 8;
    c.geometry.fp8 = format;
    const Plan plan = make_plan(c, 1);
    std::set<std::array<uint8_t, 128>> keys;
    std::set<uint8_t> bytes;
    for (uint64_t seed = 1; seed < 3; ++seed) {
      for (int attempt = 0; attempt < 40; ++attempt) {
        const Poison p = poison(c, plan, seed, 1, 1, attempt);
        EXPECT_EQ(p.scales, std::vector<float>(8, 1e30f));
        ASSERT_EQ(p.keys.size(), 8u);
        for (const auto& key : p.keys) {
          EXPECT_TRUE(keys.insert(key).second);
          for (const uint8_t code : key) {
            EXPECT_FALSE(std::isnan(oracle::e4m3_to_f32(code, format)));
            bytes.insert(code);
          }
        }
      }
    }
    EXPECT_EQ(bytes.size(), format == oracle::Fp8::kE4m3fn ? 254u : 255u);
  }
}

TEST(Inputs, OutputPatternIsSeekableAndNewEachTime) {
  std::vector<std::byte> whole(100), part(37), other(100);
  output_pattern(1, 0, 1, 2, 3, 0, whole);
  output_pattern(1, 0, 1, 2, 3, 21, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 21));
  const auto differs = [&](uint64_t seed, int launch, int step, int attempt,
                           int tensor) {
    output_pattern(seed, launch, step, attempt, tensor, 0, other);
    return other != whole;
  };
  EXPECT_FALSE(differs(1, 0, 1, 2, 3));
  EXPECT_TRUE(differs(2, 0, 1, 2, 3));
  EXPECT_TRUE(differs(1, 1, 1, 2, 3));
  EXPECT_TRUE(differs(1, 0, 0, 2, 3));
  EXPECT_TRUE(differs(1, 0, 1, 3, 3));
  EXPECT_TRUE(differs(1, 0, 1, 2, 4));
}

// |dot| and the sum over heads are bounded by the largest values that occur;
// all values are integers.
TEST(Inputs, IntegerFillKeepsEverySumBelow24Bits) {
  for (const std::string cache :
       {"random", "ties", "zeros", "recent", "narrow"}) {
    const Case c = case_of(
        "--stage score --fill integers --rows 4 --rowset mixed --pos 2000 "
        "--geometry dsv32 --scale f32 "
        "--fp8 e4m3fnuz --cache " +
        cache);
    const Plan plan = make_plan(c, 1);
    const ScoreInputs inputs = score_inputs(c, 1);
    ASSERT_EQ(inputs.query.size(), 4u * 64 * 128);
    ASSERT_EQ(inputs.weights.size(), 4u * 64);
    double query = 0, weight = 0, key = 0;
    const auto take = [](float value, double& largest) {
      EXPECT_EQ(value, std::nearbyint(value));
      largest = std::max(largest, std::fabs(double{value}));
    };
    for (const uint16_t code : inputs.query)
      take(oracle::bf16_to_f32(code), query);
    for (const float value : inputs.weights) take(value, weight);
    const auto bytes = all_of<uint8_t>(Input::kCache, c, plan);
    for (size_t page = 0; page < plan.page_states.size(); ++page) {
      for (size_t token = 0; token < 64; ++token) {
        if ((plan.page_states[page].cached >> token & 1) == 0) continue;
        for (size_t dim = 0; dim < 128; ++dim)
          take(oracle::e4m3_to_f32(bytes[page * 8448 + token * 128 + dim],
                                   oracle::Fp8::kE4m3fnuz),
               key);
        float scale;
        std::memcpy(&scale, &bytes[page * 8448 + 8192 + token * 4], 4);
        int exponent;
        EXPECT_EQ(std::frexp(scale, &exponent), 0.5f);
      }
    }
    EXPECT_EQ(query, 4);
    EXPECT_LE(weight, 4);
    EXPECT_GE(weight, 2);
    EXPECT_EQ(key > 0, cache != "zeros");
    EXPECT_LT(query * key * 128 * weight * 64, 1 << 24);
  }
}

}  // namespace
}  // namespace exact_topk::cases
