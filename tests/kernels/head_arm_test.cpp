// SPDX-License-Identifier: Apache-2.0
//
// The head arm against the base arm, bit for bit, and against the oracle, over
// row sets, grids, waves and schedules; and the paths that it says it took.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/scenario.h"

namespace exact_topk::tests {
namespace {

struct Outputs {
  std::vector<uint16_t> x, q_lora, index_query;
  std::vector<uint32_t> mailbox, raw_key, w, scores;
  std::vector<int32_t> list;
  std::vector<uint8_t> cache;
  bool operator==(const Outputs&) const = default;
};

Outputs outputs(const Scenario& scenario, int layer) {
  const Opened& c = scenario.candidate();
  return {c.read<uint16_t>(XTK_X),           c.read<uint16_t>(XTK_Q_LORA),
          c.read<uint16_t>(XTK_INDEX_QUERY), c.read<uint32_t>(XTK_MAILBOX),
          c.read<uint32_t>(XTK_RAW_KEY),     c.read<uint32_t>(XTK_W),
          c.read<uint32_t>(XTK_SCORES),      c.read<int32_t>(XTK_LIST),
          c.read<uint8_t>(XTK_CACHE, layer)};
}

const std::vector<RowPlan> kChain = {{0, 2600}, {0, 2601}, {0, 2602},
                                     {0, 2603}, {0, 2604}, {0, 2605},
                                     {0, 2606}, {0, 2607}};
const std::vector<RowPlan> kMixed = {{-1, -1}, {0, 2600}, {0, 2601}, {-1, -1},
                                     {1, 127}, {0, 2602}, {2, 0},    {-1, -1}};

// Runs `plan` on base and on `arm`; both are judged and must agree in every
// byte.
void expect_equal_to_base(ScenarioPlan plan, const char* arm) {
  plan.arm = "base";
  Scenario base(plan);
  base.launch();
  base.judge();
  plan.arm = arm;
  Scenario head(plan);
  head.launch();
  head.judge();
  EXPECT_TRUE(outputs(base, plan.layer) == outputs(head, plan.layer)) << arm;
}

TEST(HeadArm, EqualsBaseOnEveryGridAndWave) {
  for (const int wave : {64, 32}) {
    for (const int blocks : {1, 2, 3, 8, 16}) {
      for (const auto& rows : {kChain, kMixed}) {
        SCOPED_TRACE("wave " + std::to_string(wave) + ", blocks " +
                     std::to_string(blocks));
        ScenarioPlan plan{.wave = wave, .rows = rows};
        plan.blocks = blocks;
        expect_equal_to_base(plan, "head");
      }
    }
  }
}

TEST(HeadArm, EveryChangeOnItsOwn) {
  for (const char* arm : {"base+grouped", "base+slices"}) {
    ScenarioPlan plan{.rows = kChain};
    plan.blocks = 8;
    expect_equal_to_base(plan, arm);
  }
}

TEST(HeadArm, EveryKindAndSwitch) {
  for (const int kind : {XTK_KIND_DENSE, XTK_KIND_EMBED}) {
    ScenarioPlan plan{.kind = kind, .rows = kMixed};
    plan.blocks = 4;
    expect_equal_to_base(plan, "head");
  }
  for (int switches = 0; switches < 32; switches += 5) {
    SCOPED_TRACE("switches " + std::to_string(switches));
    ScenarioPlan plan{.wave = (switches & 1) != 0 ? 32 : 64,
                      .rows = {{0, 70}, {0, 71}, {-1, -1}, {1, 200}},
                      .seed = 5};
    plan.geometry.rope = switches & 1;
    plan.geometry.hadamard = switches >> 1 & 1;
    plan.geometry.scale = switches >> 2 & 1;
    plan.geometry.fp8 = switches >> 3 & 1;
    plan.geometry.page_layout = switches >> 4 & 1;
    plan.geometry.k = 64;
    plan.blocks = 4;
    expect_equal_to_base(plan, "head");
  }
}

// The published shape of the model: sums are long enough for their order to
// show.
TEST(HeadArm, ModelWidths) {
  ScenarioPlan plan{.partials = 8, .rows = {{0, 200}, {0, 201}, {1, 90}}};
  plan.geometry.hidden = 6144;
  plan.geometry.q_lora = 2048;
  plan.geometry.heads = 32;
  plan.geometry.k = 64;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    plan.seed = seed;
    expect_equal_to_base(plan, "head");
  }
}

// Waves of 32 and of 64 add in one order too.
TEST(HeadArm, WaveSizesAgree) {
  ScenarioPlan plan{.partials = 8, .rows = {{0, 200}, {0, 201}, {1, 90}}};
  plan.geometry.hidden = 6144;
  plan.geometry.q_lora = 2048;
  plan.geometry.k = 64;
  plan.arm = "head";
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    plan.seed = seed;
    plan.wave = 64;
    Scenario wide(plan);
    wide.launch();
    plan.wave = 32;
    Scenario narrow(plan);
    narrow.launch();
    EXPECT_TRUE(outputs(wide, plan.layer) == outputs(narrow, plan.layer));
  }
}

TEST(HeadArm, SchedulesAgree) {
  ScenarioPlan plan{.rows = kChain};
  plan.blocks = 4;
  plan.arm = "head";
  Scenario first(plan);
  first.launch();
  const Outputs expected = outputs(first, plan.layer);
  for (const char* schedule : {"reverse", "random:1", "random:2", "random:3"}) {
    plan.schedule = schedule;
    Scenario other(plan);
    other.launch();
    EXPECT_TRUE(outputs(other, plan.layer) == expected) << schedule;
  }
}

// Stale pairs of an earlier launch, of other shapes too, must not be taken for
// new ones.
TEST(HeadArm, LaunchesFollowOneAnotherWithoutAReset) {
  ScenarioPlan plan{.rows = kChain};
  plan.blocks = 4;
  plan.arm = "head";
  Scenario scenario(plan);
  for (int attempt = 0; attempt < 3; ++attempt) {
    scenario.launch(attempt);
    scenario.judge();
  }
}

TEST(HeadArm, LongRowsOnManySlices) {
  ScenarioPlan plan{.rows = {{0, 70000}, {0, 70001}, {1, 33000}, {2, 500}}};
  plan.blocks = 16;
  expect_equal_to_base(plan, "head");
  plan.blocks =
      1;  // the fewest slices that 16-bit counts allow, all on one block
  expect_equal_to_base(plan, "head");
}

TEST(HeadArm, Witness) {
  ScenarioPlan plan{.rows = kChain};
  plan.blocks = 16;
  plan.arm = "head";
  Scenario scenario(plan);
  scenario.launch();
  for (int row = 0; row < 8; ++row) {
    const xtk_witness_row w = scenario.candidate().witness(row);
    EXPECT_EQ(w.live, 1);
    EXPECT_EQ(w.group, row / 4 * 4);
    EXPECT_EQ(w.group_rows, 4);
    EXPECT_EQ(w.runs, 16);    // 41 pages over 16 blocks
    EXPECT_EQ(w.batches, 1);  // 3 pages at most
    EXPECT_EQ(w.patched_keys, row < 4 ? 4 : 8)
        << "keys of the other group's rows count";
    EXPECT_EQ(w.slices, 2);  // 16 blocks for 8 rows
    EXPECT_EQ(w.chunks, 1);
  }
}

}  // namespace
}  // namespace exact_topk::tests
