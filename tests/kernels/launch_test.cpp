// SPDX-License-Identifier: Apache-2.0
//
// Whole launches of the base arm, judged by the oracle stage after stage.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/kernels/scenario.h"

namespace exact_topk::tests {
namespace {

// Two requests, one of three rows, a pad row between and one at each end; n <=
// k and n > k.
const std::vector<RowPlan> kMixedRows = {{-1, -1}, {0, 2600}, {0, 2601},
                                         {-1, -1}, {1, 127},  {0, 2602},
                                         {2, 0},   {-1, -1}};

TEST(Launch, EveryKindAndBothWaves) {
  for (const int wave : {64, 32}) {
    for (const int kind : {XTK_KIND_INDEX, XTK_KIND_DENSE, XTK_KIND_EMBED}) {
      SCOPED_TRACE("wave " + std::to_string(wave) + ", kind " +
                   std::to_string(kind));
      Scenario scenario(
          {.kind = kind, .partials = 4, .wave = wave, .rows = kMixedRows});
      scenario.launch();
      scenario.judge();
    }
  }
}

TEST(Launch, EverySwitch) {
  for (int switches = 0; switches < 32; ++switches) {
    SCOPED_TRACE("switches " + std::to_string(switches));
    ScenarioPlan plan{.wave = (switches & 1) != 0 ? 32 : 64,
                      .rows = {{0, 70}, {-1, -1}, {1, 200}},
                      .seed = 5};
    plan.geometry.rope = switches & 1;
    plan.geometry.hadamard = switches >> 1 & 1;
    plan.geometry.scale = switches >> 2 & 1;
    plan.geometry.fp8 = switches >> 3 & 1;
    plan.geometry.page_layout = switches >> 4 & 1;
    plan.geometry.k = 64;
    Scenario scenario(plan);
    scenario.launch();
    scenario.judge();
  }
}

// The published shape of the model, small in keys.
TEST(Launch, ModelWidths) {
  ScenarioPlan plan{.partials = 8, .rows = {{0, 63}, {0, 64}}};
  plan.geometry.hidden = 6144;
  plan.geometry.q_lora = 2048;
  plan.geometry.heads = 32;
  Scenario scenario(plan);
  scenario.launch();
  scenario.judge();
}

TEST(Launch, SlicedRows) {
  for (const int wave : {64, 32}) {
    SCOPED_TRACE(wave);
    Scenario scenario(
        {.wave = wave, .rows = {{0, 40000}, {1, 32768}, {2, 32767}}});
    scenario.launch();
    scenario.judge();
    EXPECT_EQ(scenario.candidate().witness(0).slices, 16);
    EXPECT_EQ(scenario.candidate().witness(1).slices, 16);
    EXPECT_EQ(scenario.candidate().witness(2).slices, 1);
  }
}

// Every order of threads gives the same bits, and so does every fill of fresh
// memory.
TEST(Launch, SchedulesAndSeedsAgree) {
  std::vector<float> scores;
  std::vector<int32_t> list;
  for (const char* schedule :
       {"round-robin", "reverse", "random:3", "random:4"}) {
    SCOPED_TRACE(schedule);
    ScenarioPlan plan{
        .schedule = schedule, .rows = {{0, 2500}, {0, 2501}}, .seed = 3};
    Scenario scenario(plan);
    scenario.launch();
    scenario.judge();
    const auto now = scenario.candidate().read<float>(XTK_SCORES);
    const auto entries = scenario.candidate().read<int32_t>(XTK_LIST);
    if (scores.empty()) {
      scores = now;
      list = entries;
    }
    EXPECT_TRUE(std::memcmp(scores.data(), now.data(), now.size() * 4) == 0);
    EXPECT_EQ(list, entries);
  }
}

// Stale scratch of the launch before, other poison, other patterns: the same
// result.
TEST(Launch, RepeatsWithoutReset) {
  Scenario scenario({.rows = {{0, 33000}, {1, 2100}}});
  std::vector<int32_t> first;
  for (int attempt = 0; attempt < 3; ++attempt) {
    scenario.launch(attempt);
    scenario.judge();
    auto list = scenario.candidate().read<int32_t>(XTK_LIST);
    list.resize(3 + 2048);  // the second row's entries lie first, behind three
                            // guard entries
    list.erase(list.begin(), list.begin() + 3);
    if (first.empty()) first = list;
    EXPECT_EQ(first, list);
  }
}

TEST(Launch, OnlyPadRows) {
  Scenario scenario({.rows = {{0, 10}, {-1, -1}}});
  scenario.launch();
  scenario.judge();
  const std::vector<int32_t> none(2, -1);
  const auto list = scenario.candidate().read<int32_t>(XTK_LIST);
  for (const xtk_tensor tensor : {XTK_REQUESTS, XTK_POSITIONS, XTK_SLOTS})
    scenario.candidate().write(tensor, 0, none);
  const xtk_launch_args args{.struct_size = sizeof(args),
                             .arm = "base",
                             .layer = 1,
                             .kind = XTK_KIND_INDEX,
                             .rows = 2,
                             .partials = 2};
  scenario.candidate().check(xtk_launch(scenario.candidate().get(), &args));
  EXPECT_EQ(list, scenario.candidate().read<int32_t>(XTK_LIST));
  EXPECT_EQ(scenario.candidate().witness(0).live, 0);
}

}  // namespace
}  // namespace exact_topk::tests
