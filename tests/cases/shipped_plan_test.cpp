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

using Pages = std::set<int32_t>;

// What a live row's table names past the row's last page, beside what others
// have at that step.
struct StaleTail {
  Pages named;    // by entries past the row's last page
  Pages own;      // pages in which the row's request has keys
  Pages others;   // pages in which other requests have keys
  Pages written;  // of others, those that the launch writes a key to
};

StaleTail stale_tail(const Step& step, size_t row, size_t width) {
  const auto table = [&](size_t r) {
    return step.page_table.begin() + int64_t(r * width);
  };
  StaleTail tail;
  const auto own_pages = step.rows[row].position / 64 + 1;
  tail.named.insert(table(row) + own_pages, table(row) + int64_t(width));
  for (size_t r = 0; r < step.rows.size(); ++r) {
    if (!step.rows[r].live) continue;
    const bool own = step.rows[r].request == step.rows[row].request;
    (own ? tail.own : tail.others)
        .insert(table(r), table(r) + step.rows[r].position / 64 + 1);
    if (!own) tail.written.insert(int32_t(step.rows[r].slot / 64));
  }
  return tail;
}

bool meet(const Pages& a, const Pages& b) {
  return std::ranges::any_of(a, [&](int32_t page) { return b.contains(page); });
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
        for (size_t r = 0; r < step.rows.size(); ++r) {
          if (!step.rows[r].live) continue;
          const StaleTail tail = stale_tail(step, r, size_t(plan.table_width));
          ASSERT_FALSE(tail.named.empty()) << suite << " " << name(c);
          if (tail.others.empty()) continue;  // a single request
          ++rows;
          EXPECT_TRUE(std::ranges::includes(tail.others, tail.named))
              << suite << " " << name(c) << " row " << r;
          if (meet(tail.named, tail.written)) worst.insert(c.rowset);
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
