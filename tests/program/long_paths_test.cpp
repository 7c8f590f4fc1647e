// SPDX-License-Identifier: Apache-2.0
//
// About 300,000 keys, on the grid that a GPU has: runs of three batches and,
// where eight rows share it, slices of two chunks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::IsSupersetOf;

TEST(LongPaths, BatchesAndChunksAt300K) {
  const Scratch scratch;
  const std::string report = scratch.path("report.json");
  const Ran ran =
      check("--arm head --geometry '" EXACT_TOPK_SOURCE_DIR
            "/cases/small.json' --tp 1 --launches 1 --steps 1 --rows 8 "
            "--cache random --rowset chain --pos 300007 --json " +
            report);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto json = nlohmann::json::parse(read_text(report));
  EXPECT_THAT(json["paths"]["head"].get<std::vector<std::string>>(),
              IsSupersetOf({"3 batches in a run", "2 chunks in a slice",
                            "patches across groups",
                            "a chain of 8 rows in two groups"}));
}

}  // namespace
}  // namespace exact_topk::tests
