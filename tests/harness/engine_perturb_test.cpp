// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "harness/failure.h"
#include "harness/perturb.h"

namespace exact_topk::harness {
namespace {

TEST(Perturb, IsReadAndPrintedAlike) {
  for (const char* text :
       {"launch0/step1/in/residual:42:31", "launch1/in/q_a:0:0"})
    EXPECT_EQ(to_string(parse_perturb(text)), text);
  const Perturb p = parse_perturb("launch2/step3/in/page_table:17:5");
  EXPECT_EQ(p.launch, 2);
  EXPECT_EQ(p.step, 3);
  EXPECT_EQ(p.tensor, "page_table");
  EXPECT_EQ(p.element, 17);
  EXPECT_EQ(p.bit, 5);
  EXPECT_EQ(parse_perturb("launch1/in/q_a:0:0").step, -1);
}

TEST(Perturb, TakesTheLeafOfATree) {
  const Perturb p = parse_perturb("launch0/step0/in/cached_keys.npy:5:3");
  EXPECT_EQ(p.tensor, "cached_keys");
  EXPECT_EQ(to_string(p), "launch0/step0/in/cached_keys:5:3");
}

// Page 0 holds nothing; of pages 1 and 2 the tokens 63 and 1 are cached.
TEST(Perturb, AnElementOfTheCachedLeavesIsAByteOfTheCache) {
  cases::Case c;
  cases::Plan plan;
  plan.page_states.resize(3);
  plan.page_states[1].cached = uint64_t{1} << 63;
  plan.page_states[2].cached = uint64_t{1} << 1;
  const auto at = [&](const std::string& text) {
    const auto p = in_input(parse_perturb("launch1/step0/in/" + text), c, plan);
    return p ? to_string(*p) : "nothing";
  };
  // A page has 8448 bytes: 64 keys of 128, then 64 scales of 4.
  const int64_t first = 8448, second = 2 * 8448;
  const auto byte = [](int64_t element, int bit) {
    return fmt::format("launch1/step0/in/cache:{}:{}", element, bit);
  };
  EXPECT_EQ(at("cached_keys:0:7"), byte(first + 63 * 128, 7));
  EXPECT_EQ(at("cached_keys:127:0"), byte(first + 63 * 128 + 127, 0));
  EXPECT_EQ(at("cached_keys:130:1"), byte(second + 1 * 128 + 2, 1));
  EXPECT_EQ(at("cached_keys:256:0"), "nothing");
  EXPECT_EQ(at("cached_scales:0:31"), byte(first + 8192 + 63 * 4 + 3, 7));
  EXPECT_EQ(at("cached_scales:1:8"), byte(second + 8192 + 1 * 4 + 1, 0));
  EXPECT_EQ(at("cached_scales:2:0"), "nothing");
  EXPECT_EQ(at("residual:9:1"), "launch1/step0/in/residual:9:1");
}

// Pad rows have no poison, so the second element row is the third row's.
TEST(Perturb, FlipsThePoisonOfLiveRows) {
  cases::Step rows;
  rows.rows.resize(3);
  rows.rows[0].live = rows.rows[2].live = true;
  rows.rows[1].live = false;
  const auto flipped = [&](const std::string& text, int launch, int step) {
    cases::Poison poison{std::vector<std::array<uint8_t, 128>>(3),
                         std::vector<float>(3, 0.0f)};
    flip(parse_perturb("launch1/step1/in/" + text), rows, launch, step, poison);
    return poison;
  };
  EXPECT_EQ(flipped("poison_keys:130:7", 1, 1).keys[2][2], 0x80);
  EXPECT_EQ(flipped("poison_keys:130:7", 1, 0).keys[2][2], 0);
  EXPECT_EQ(flipped("poison_keys:130:7", 0, 1).keys[2][2], 0);
  EXPECT_EQ(flipped("poison_scales:1:30", 1, 1).scales,
            (std::vector<float>{0.0f, 0.0f, 2.0f}));
  EXPECT_EQ(flipped("poison_scales:0:30", 1, 1).scales,
            (std::vector<float>{2.0f, 0.0f, 0.0f}));
}

TEST(Perturb, RefusesOtherForms) {
  for (const char* text :
       {"", "residual:1:1", "launch0/step0/residual:1:1",
        "launch0/step0/in/residual:1", "launch0/step0/in/residual:-1:1",
        "launch0/step0/in/residual:1:1 ",
        "launch0/step0/in/residual:99999999999999999999:1"})
    EXPECT_THROW(parse_perturb(text), UsageError) << text;
  EXPECT_THROW(parse_perturb("launch0/in/" + std::string(100000, 'a') + ":0:0"),
               UsageError);
}

TEST(Perturb, NamesStepsOrLayersByLifetime) {
  cases::InputInfo step, layer;
  step.name = layer.name = "t";
  step.lifetime = cases::Lifetime::kStep;
  layer.lifetime = cases::Lifetime::kLayer;
  EXPECT_TRUE(perturbs(parse_perturb("launch0/step1/in/t:0:0"), step, 0, 1));
  EXPECT_FALSE(perturbs(parse_perturb("launch0/step1/in/t:0:0"), step, 0, 0));
  EXPECT_FALSE(perturbs(parse_perturb("launch0/step1/in/t:0:0"), step, 1, 1));
  EXPECT_FALSE(perturbs(parse_perturb("launch0/step0/in/u:0:0"), step, 0, 0));
  // An input of a step is named with its step, or nothing is flipped.
  EXPECT_FALSE(perturbs(parse_perturb("launch0/in/t:0:0"), step, 0, -1));
  EXPECT_TRUE(perturbs(parse_perturb("launch1/in/t:0:0"), layer, 1, 0));
  EXPECT_TRUE(perturbs(parse_perturb("launch1/step0/in/t:0:0"), layer, 1, 0));
  EXPECT_FALSE(perturbs(parse_perturb("launch1/step1/in/t:0:0"), layer, 1, 0));
}

TEST(Perturb, NamesTheOneRopeTableByAnyLaunch) {
  cases::InputInfo table;
  table.name = "t";
  table.lifetime = cases::Lifetime::kCase;
  EXPECT_TRUE(perturbs(parse_perturb("launch1/in/t:0:0"), table, 0, 0));
  EXPECT_FALSE(perturbs(parse_perturb("launch1/step1/in/t:0:0"), table, 0, 0));
}

TEST(Perturb, FlipsItsBitAloneAndOnlyInsideTheRange) {
  const Perturb p = parse_perturb("launch0/step0/in/t:5:17");
  std::array<std::byte, 8> two{};  // elements 4 and 5, four bytes each
  flip(p, 4, 4, two);
  std::array<std::byte, 8> expected{};
  expected[4 + 2] = std::byte{2};  // bit 17 is bit 1 of byte 2
  EXPECT_EQ(two, expected);
  flip(p, 6, 4, two);
  flip(p, 3, 4, two);  // elements 3 and 4
  EXPECT_EQ(two, expected);
}

}  // namespace
}  // namespace exact_topk::harness
