// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

std::string refusal(const std::string& line) {
  return sentence([&] { cases_of(line); });
}

TEST(Options, TakeListsWithCommasAndEquals) {
  const auto a = cases_of("--rows 2,4 --pos 1,2 --cache ties --rowset chain");
  EXPECT_EQ(a, cases_of("--rows=2,4 --pos=1,2 --cache=ties --rowset=chain"));
  EXPECT_EQ(a.size(), 4u);
}

TEST(Options, ValuesOfAnOptionAreFoundInAnyArguments) {
  const std::vector<std::string> words = {"--a",  "1", "x",  "--a=2",
                                          "--ab", "3", "--a"};
  EXPECT_EQ(values_of(words, "--a"), (std::vector<std::string>{"1", "2"}));
}

TEST(Options, EveryBadValueIsOneSentenceWithOptionAndValue) {
  EXPECT_EQ(refusal("--kind moe"),
            "--kind is 'moe'; it takes index, dense or embed");
  EXPECT_EQ(refusal("--tp 3"), "--tp is '3'; it takes 1, 2, 4 or 8");
  EXPECT_EQ(refusal("--tp 16"), "--tp is '16'; it takes 1, 2, 4 or 8");
  EXPECT_EQ(refusal("--rows 9"), "--rows is '9'; it takes numbers from 1 to 8");
  EXPECT_EQ(refusal("--rows 0"), "--rows is '0'; it takes numbers from 1 to 8");
  EXPECT_EQ(refusal("--rows 2,,4"),
            "--rows is ''; it takes numbers from 1 to 8");
  EXPECT_EQ(refusal("--cache tied"),
            "--cache is 'tied'; it takes random, ties, zeros, recent, narrow");
  EXPECT_EQ(refusal("--rowset all"),
            "--rowset is 'all'; it takes serving, mixed, chain, padded");
  EXPECT_EQ(refusal("--pos -1"),
            "--pos is '-1'; it takes positions from 0 to 1048639");
  EXPECT_EQ(refusal("--pos 8447x"),
            "--pos is '8447x'; it takes positions from 0 to 1048639");
  EXPECT_EQ(refusal("--pos 1048640"),
            "--pos is '1048640'; it takes positions from 0 to 1048639");
  EXPECT_EQ(
      refusal("--pos 99999999999999999999"),
      "--pos is '99999999999999999999'; it takes positions from 0 to 1048639");
  EXPECT_EQ(refusal("--stage all"),
            "--stage is 'all'; it takes launch, score or select");
  EXPECT_TRUE(refusal("--stage select --rows-from steep")
                  .starts_with("--rows-from is 'steep'; it takes random, "));
  EXPECT_EQ(refusal("--stage score --fill ones"),
            "--fill is 'ones'; it takes integers");
  EXPECT_EQ(refusal("--launches 0"),
            "--launches is '0'; it takes a number from 1 to 64");
  EXPECT_EQ(refusal("--order random"), "--order is 'random'; it takes model");
  EXPECT_EQ(refusal("--order model --launches 22"),
            "--launches is 22, and --order model has 21 launches");
  EXPECT_EQ(refusal("--order model --kind dense"),
            "--kind means nothing with --order model, whose launches have "
            "kinds of their own");
  EXPECT_EQ(refusal("--steps 65"),
            "--steps is '65'; it takes a number from 1 to 64");
  EXPECT_EQ(refusal("--k 2049"),
            "--k is '2049'; it takes numbers from 1 to 2048");
  EXPECT_EQ(refusal("--k 0"), "--k is '0'; it takes numbers from 1 to 2048");
  EXPECT_EQ(refusal("--rope none"),
            "--rope is 'none'; it takes interleaved or half-split");
  EXPECT_EQ(refusal("--hadamard yes"),
            "--hadamard is 'yes'; it takes on or off");
  EXPECT_EQ(refusal("--scale bf16"),
            "--scale is 'bf16'; it takes ue8m0 or f32");
  EXPECT_EQ(refusal("--fp8 e5m2"),
            "--fp8 is 'e5m2'; it takes e4m3fn or e4m3fnuz");
  EXPECT_EQ(refusal("--page-layout shuffled"),
            "--page-layout is 'shuffled'; it takes plain or preshuffled16");
  EXPECT_EQ(refusal("--seed 7"), "'--seed' is no case option");
  for (const char* line :
       {"8447", "--pos 8447 8447", "--rows=2 8447", "--tp 2 8447 --rows 2"})
    EXPECT_EQ(refusal(line),
              "'8447' belongs to no option; lists are written with commas");
  EXPECT_EQ(refusal("--pos --rows 2"), "--pos needs a value, P,...");
  EXPECT_EQ(refusal("--pos"), "--pos needs a value, P,...");
}

TEST(Options, WhatMeansNothingAtAStageIsRefused) {
  EXPECT_EQ(refusal("--rows-from rising"), "--rows-from needs --stage select");
  EXPECT_EQ(refusal("--fill integers"), "--fill needs --stage score");
  EXPECT_EQ(refusal("--stage score --kind dense"),
            "--kind means nothing with --stage score");
  EXPECT_EQ(refusal("--stage select --steps 1"),
            "--steps means nothing with --stage select");
  for (const char* option :
       {"--cache ties", "--rowset chain", "--launches 1", "--geometry dsv32",
        "--rope half-split", "--hadamard off", "--scale f32", "--fp8 e4m3fn",
        "--page-layout plain", "--kind index", "--order model"}) {
    const std::string text = option;
    EXPECT_EQ(
        refusal("--stage select " + text),
        text.substr(0, text.find(' ')) + " means nothing with --stage select");
  }
}

// n of the last step counts: position + (steps - 1) * rows of the request + 1.
TEST(Options, PositionsEndAtTwoToTheTwentyAnd64Keys) {
  EXPECT_EQ(cases_of("--pos 1048639 --steps 1 --rows 8 --cache random").size(),
            4u);
  EXPECT_EQ(
      cases_of("--pos 1048631 --rows 8 --cache random --rowset chain").size(),
      1u);
  EXPECT_EQ(refusal("--pos 1048632 --rows 8 --cache random --rowset chain"),
            "--pos 1048632 gives a row of 1048641 keys on the last of 2 steps; "
            "at most 1048640 are possible");
  EXPECT_EQ(
      cases_of("--pos 1048638 --rows 8 --cache random --rowset mixed").size(),
      1u);
  EXPECT_EQ(refusal("--pos 1048639 --rows 8 --cache random --rowset mixed"),
            "--pos 1048639 gives a row of 1048641 keys on the last of 2 steps; "
            "at most 1048640 are possible");
}

}  // namespace
}  // namespace exact_topk::cases
