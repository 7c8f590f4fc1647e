// SPDX-License-Identifier: Apache-2.0
//
// The paths of the head arm are reached: short case lists on grids of few
// blocks, so that batches and chunks occur at short positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAre;

std::string launches() {
  return "--arm head --geometry '" EXACT_TOPK_SOURCE_DIR
         "/cases/small.json' --tp 1 --launches 1 --steps 1 "
         "--rowset chain ";
}

std::string selections() { return "--arm head --stage select "; }

// The paths of the head arm that a run reports.
std::vector<std::string> paths(const std::string& arguments) {
  const Scratch scratch;
  const std::string report = scratch.path("report.json");
  const Ran ran = check(arguments + " --json " + report);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto json = nlohmann::json::parse(read_text(report));
  return json["paths"]["head"].get<std::vector<std::string>>();
}

// One row of n <= k, in a group alone, and nothing else.
TEST(Paths, AShortRowTakesOne) {
  EXPECT_THAT(paths(launches() + "--rows 1 --cache random --pos 100"),
              UnorderedElementsAre("groups of 1 row"));
}

TEST(Paths, GroupsOfEverySize) {
  for (const int rows : {1, 2, 3, 4}) {
    const auto taken = paths(launches() + "--cache random --pos 127 --rows " +
                             std::to_string(rows));
    EXPECT_THAT(taken, Contains("groups of " + std::to_string(rows) +
                                (rows == 1 ? " row" : " rows")));
    EXPECT_THAT(taken, Not(Contains("patches across groups")));
  }
}

TEST(Paths, AChainOfEightPatchesAcrossItsGroups) {
  const auto taken = paths(launches() + "--cache random --pos 127 --rows 8");
  EXPECT_THAT(taken, Contains("a chain of 8 rows in two groups"));
  EXPECT_THAT(taken, Contains("patches across groups"));
}

// A slice a block of the grid, and about 1,024 keys each: 65,536 keys on 64.
TEST(Paths, SixtyFourSlices) {
  const std::string row = selections() + "--rows-from random --rows 1 ";
  EXPECT_THAT(paths(row + "--pos 65535 --blocks 64"), Contains("64 slices"));
  EXPECT_THAT(paths(row + "--pos 64511 --blocks 64"),
              Not(Contains("64 slices")));
}

// 33 pages are one run of five batches on one block, and one slice.
TEST(Paths, BatchesInARun) {
  const auto taken =
      paths(launches() + "--cache random --pos 2111 --rows 1 --blocks 1");
  EXPECT_THAT(taken, Contains("3 batches in a run"));
  EXPECT_THAT(taken, Not(Contains("slices")));
}

// 8,448 keys are one slice on one block, with room for 8,192.
TEST(Paths, ChunksInASlice) {
  EXPECT_THAT(
      paths(selections() + "--rows-from random --rows 1 --pos 8447 --blocks 1"),
      Contains("2 chunks in a slice"));
}

TEST(Paths, StopsAtEveryDigit) {
  const std::string row = selections() + "--rows 1 --rows-from ";
  EXPECT_THAT(paths(row + "share-12-4096"), Contains("a stop at 12 bits"));
  EXPECT_THAT(paths(row + "share-24-4096"), Contains("a stop at 24 bits"));
  EXPECT_THAT(paths(row + "share-24-4097"), Contains("a stop at 32 bits"));
}

// 2,048 ties among slices of at most 960 keys.
TEST(Paths, TiesAcrossSlices) {
  const auto taken = paths(launches() + "--cache zeros --pos 8447 --rows 1");
  EXPECT_THAT(taken, Contains("ties across slices"));
  EXPECT_THAT(taken, Contains("slices"));
}

}  // namespace
}  // namespace exact_topk::tests
