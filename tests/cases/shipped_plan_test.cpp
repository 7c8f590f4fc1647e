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

// What every page of a step is: which requests have keys in it, and which
// write one to it, a bit a request.
struct PageUse {
  std::vector<unsigned> held, written;  // by page
};

PageUse page_use(const Plan& plan, const Step& step) {
  PageUse use{std::vector<unsigned>(size_t(plan.pages)),
              std::vector<unsigned>(size_t(plan.pages))};
  for (size_t r = 0; r < step.rows.size(); ++r) {
    const Row& row = step.rows[r];
    if (!row.live) continue;
    const auto table = step.page_table.begin() + int64_t(r) * plan.table_width;
    for (int64_t j = 0; j <= row.position / 64; ++j)
      use.held[size_t(table[j])] |= 1u << row.request;
    use.written[size_t(row.slot / 64)] |= 1u << row.request;
  }
  return use;
}

// SPEC section 2: entries past a row's last page name live pages of other
// requests. The worst of them name a page that the launch writes meanwhile.
TEST(ShippedPlans, StaleTableEntriesNameOthersLivePages) {
  for (const char* suite : {"quick", "exactness", "exactness-long"}) {
    int rows = 0;
    std::set<std::string> worst;  // row sets with the worst entries
    std::set<std::string> seen;   // inputs do not depend on T
    for (const Case& c : shipped(suite)) {
      if (c.stage == Stage::kSelect || !seen.insert(input_name(c)).second)
        continue;
      const Plan plan = make_plan(c, kSeed);
      for (const Step& step : plan.steps) {
        const PageUse use = page_use(plan, step);
        for (size_t r = 0; r < step.rows.size(); ++r) {
          const Row& row = step.rows[r];
          if (!row.live || plan.requests < 2) continue;
          ++rows;
          const unsigned others = ~(1u << row.request);
          const int64_t stale = row.position / 64 + 1;
          ASSERT_LT(stale, plan.table_width) << suite << " " << name(c);
          for (int64_t j = stale; j < plan.table_width; ++j) {
            const auto page = size_t(
                step.page_table[r * size_t(plan.table_width) + size_t(j)]);
            ASSERT_NE(use.held[page] & others, 0u)
                << suite << " " << name(c) << " row " << r << " column " << j;
            if ((use.written[page] & others) != 0) worst.insert(c.rowset);
          }
        }
      }
    }
    EXPECT_GT(rows, 0) << suite;
    EXPECT_TRUE(worst.contains("mixed")) << suite;
  }
}

// A row behind a longer one of another request has that row's page, to which
// the launch writes, where its own table is stale: in every case that has such
// rows.
TEST(ShippedPlans, TheWorstStaleEntryIsThereBehindEveryLongerRow) {
  for (const char* suite : {"quick", "exactness", "exactness-long"}) {
    int pairs = 0;
    for (const Case& c : shipped(suite)) {
      if (c.stage == Stage::kSelect) continue;
      const Plan plan = make_plan(c, kSeed);
      for (const Step& step : plan.steps) {
        for (size_t r = 1; r < step.rows.size(); ++r) {
          const Row &before = step.rows[r - 1], &row = step.rows[r];
          if (!before.live || !row.live || before.request == row.request ||
              before.position / 64 <= row.position / 64)
            continue;
          ++pairs;
          EXPECT_EQ(step.page_table[r * size_t(plan.table_width) +
                                    size_t(before.position / 64)],
                    before.slot / 64)
              << suite << " " << name(c) << " row " << r;
        }
      }
    }
    EXPECT_GT(pairs, 0) << suite;
  }
}

}  // namespace
}  // namespace exact_topk::cases
