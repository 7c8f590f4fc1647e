// SPDX-License-Identifier: Apache-2.0
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
