// SPDX-License-Identifier: Apache-2.0
//
// Which paths rows took, from witnesses written by hand: each path is seen
// where it was taken, and not where it just was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/paths.h"

namespace exact_topk::harness {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// A live row that selected by one slice and was scored alone in one batch.
WitnessedRow row(int64_t keys = 100) {
  WitnessedRow made;
  made.witness.live = 1;
  made.witness.slices = made.witness.chunks = 1;
  made.witness.batches = made.witness.runs = 1;
  made.witness.group_rows = made.witness.patched_keys = 1;
  made.keys = keys;
  made.request = 0;
  return made;
}

// A chain of eight rows in groups of these sizes.
std::vector<WitnessedRow> chain(std::vector<int> groups) {
  std::vector<WitnessedRow> rows;
  for (const int size : groups) {
    const auto first = static_cast<int>(rows.size());
    for (int i = 0; i < size; ++i) {
      rows.push_back(row());
      rows.back().witness.group = first;
      rows.back().witness.group_rows = size;
      rows.back().witness.patched_keys = first + size;
    }
  }
  return rows;
}

std::vector<std::string> taken(const std::vector<WitnessedRow>& rows) {
  return paths_of(rows).names();
}

TEST(Paths, APlainRowAndAPadRow) {
  EXPECT_THAT(taken({row()}), ElementsAre("groups of 1 row"));
  WitnessedRow pad = row();
  pad.witness.live = 0;
  EXPECT_THAT(taken({pad}), IsEmpty());
  EXPECT_THAT(taken({}), IsEmpty());
}

TEST(Paths, ChainOfEightNeedsTwoGroupsOfFourOfOneRequest) {
  const std::string path = "a chain of 8 rows in two groups";
  auto rows = chain({4, 4});
  EXPECT_THAT(taken(rows),
              ElementsAre("groups of 4 rows", path, "patches across groups"));
  rows[7].request = 1;
  EXPECT_THAT(taken(rows), Not(Contains(path)));
  EXPECT_THAT(taken(chain({4, 3, 1})), Not(Contains(path)));
  EXPECT_THAT(taken(chain({4, 3})), Not(Contains(path)));
}

TEST(Paths, PatchesOfOwnRowsAreNotAcrossGroups) {
  EXPECT_THAT(taken(chain({4})), Not(Contains("patches across groups")));
  auto rows = chain({2, 2});
  rows[2].witness.patched_keys = rows[3].witness.patched_keys = 2;
  EXPECT_THAT(taken(rows), ElementsAre("groups of 2 rows"));
}

// Each number on both sides of its bound.
TEST(Paths, Bounds) {
  const auto expect = [](const char* path, int32_t xtk_witness_row::*field,
                         int32_t least) {
    WitnessedRow one = row();
    one.witness.*field = least - 1;
    EXPECT_THAT(taken({one}), Not(Contains(path))) << path;
    one.witness.*field = least;
    EXPECT_THAT(taken({one}), Contains(path)) << path;
  };
  expect("3 batches in a run", &xtk_witness_row::batches, 3);
  expect("slices", &xtk_witness_row::slices, 2);
  expect("64 slices", &xtk_witness_row::slices, 64);
  expect("2 chunks in a slice", &xtk_witness_row::chunks, 2);
  expect("a stop at 12 bits", &xtk_witness_row::stop_bits, 12);
  expect("a stop at 24 bits", &xtk_witness_row::stop_bits, 24);
  expect("a stop at 32 bits", &xtk_witness_row::stop_bits, 32);
}

// 8,448 keys are 132 pages: nine slices of at most 15 pages, 960 keys.
TEST(Paths, TiesCrossSlicesWhenOneCannotHoldThem) {
  WitnessedRow one = row(8448);
  one.witness.slices = 9;
  one.witness.direct_ties = 960;
  EXPECT_THAT(taken({one}), Not(Contains("ties across slices")));
  one.witness.direct_ties = 961;
  EXPECT_THAT(taken({one}), Contains("ties across slices"));
  one.witness.slices = 1;
  EXPECT_THAT(taken({one}), Not(Contains("ties across slices")));
}

TEST(Paths, AddUpByArm) {
  ArmPaths all = {{"base", paths_of(chain({1}))}};
  add(all, {{"head", paths_of(chain({2}))}, {"base", paths_of(chain({3}))}});
  EXPECT_THAT(all["base"].names(),
              ElementsAre("groups of 1 row", "groups of 3 rows"));
  EXPECT_THAT(all["head"].names(), ElementsAre("groups of 2 rows"));
}

}  // namespace
}  // namespace exact_topk::harness
