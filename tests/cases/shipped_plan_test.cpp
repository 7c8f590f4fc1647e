// SPDX-License-Identifier: Apache-2.0
//
// The plans of the suites in cases/: what they hold, and what they would write.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cases/plan.h"
#include "cases/suite.h"

namespace exact_topk::cases {
namespace {

constexpr uint64_t kSeed = 1;

std::vector<Case> shipped(const std::string& suite) {
  return read_suite(EXACT_TOPK_SOURCE_DIR "/cases/" + suite + ".suite",
                    std::nullopt, 4);
}

// Scores and list of every live row of every launch and step, on every rank.
int64_t result_leaves(const std::vector<Case>& cases, int tp) {
  int64_t leaves = 0;
  for (const Case& c : cases) {
    if (c.tp != tp) continue;
    for (const Step& step : make_plan(c, kSeed).steps)
      leaves +=
          std::ranges::count_if(step.rows, &Row::live) * c.launches * 2 * tp;
  }
  return leaves;
}

// SPEC section 8.
TEST(Published, WritesTheLeavesThatTheSpecCounts) {
  const std::vector<Case> cases = shipped("published");
  EXPECT_EQ(result_leaves(cases, 8), 41984);
  EXPECT_EQ(result_leaves(cases, 4), 8704);
}

// Pages that a live row's keys lie in.
std::set<int32_t> pages_of(const Step& step, size_t row, size_t width) {
  const auto begin = step.page_table.begin() + int64_t(row * width);
  return {begin, begin + step.rows[row].position / 64 + 1};
}

// Whether a row's table goes on, past its last page, with a page in which
// another request has keys and it has none.
bool has_stale_entry(const Step& step, size_t width) {
  for (size_t r = 0; r < step.rows.size(); ++r) {
    if (!step.rows[r].live) continue;
    const std::set<int32_t> own = pages_of(step, r, width);
    std::set<int32_t> others;
    for (size_t o = 0; o < step.rows.size(); ++o)
      if (step.rows[o].live && step.rows[o].request != step.rows[r].request)
        others.merge(pages_of(step, o, width));
    for (auto j = size_t(step.rows[r].position / 64 + 1); j < width; ++j) {
      const int32_t page = step.page_table[r * width + j];
      if (others.contains(page) && !own.contains(page)) return true;
    }
  }
  return false;
}

TEST(ShippedPlans, SeveralRequestsHaveStaleTableEntries) {
  for (const char* suite : {"quick", "exactness", "exactness-long"}) {
    int several = 0;
    std::set<std::string> seen;  // inputs do not depend on T
    for (const Case& c : shipped(suite)) {
      if (c.stage == Stage::kSelect || !seen.insert(input_name(c)).second)
        continue;
      const Plan plan = make_plan(c, kSeed);
      for (const Step& step : plan.steps) {
        std::set<int> requests;
        for (const Row& row : step.rows)
          if (row.live) requests.insert(row.request);
        if (requests.size() < 2) continue;
        ++several;
        EXPECT_TRUE(has_stale_entry(step, size_t(plan.table_width)))
            << suite << " " << name(c);
      }
    }
    EXPECT_GT(several, 0) << suite;
  }
}

}  // namespace
}  // namespace exact_topk::cases
