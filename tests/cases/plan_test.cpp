// SPDX-License-Identifier: Apache-2.0
#include "cases/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "cases/rowsets.h"
#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

Case launch_case(const std::string& rowset, int rows, int64_t pos,
                 int steps = 2) {
  Case c;
  c.rowset = rowset;
  c.rows = rows;
  c.pos = pos;
  c.steps = steps;
  return c;
}

std::vector<int64_t> positions(const Plan& plan, size_t step) {
  std::vector<int64_t> result;
  for (const Row& row : plan.steps[step].rows) result.push_back(row.position);
  return result;
}

std::vector<int> requests(const Plan& plan) {
  std::vector<int> result;
  for (const Row& row : plan.steps[0].rows) result.push_back(row.request);
  return result;
}

using Positions = std::vector<int64_t>;
using Requests = std::vector<int>;

// Positions by SPEC section 5, worked out by hand; -1 is a pad row.
TEST(Plan, Serving) {
  EXPECT_EQ(positions(make_plan(launch_case("serving", 1, 100), 1), 0),
            (Positions{100}));
  EXPECT_EQ(positions(make_plan(launch_case("serving", 2, 100), 1), 0),
            (Positions{100, -1}));
  EXPECT_EQ(positions(make_plan(launch_case("serving", 3, 100), 1), 0),
            (Positions{100, -1, -1}));
  EXPECT_EQ(positions(make_plan(launch_case("serving", 4, 100), 1), 0),
            (Positions{97, 98, 99, 100}));
  const Plan six = make_plan(launch_case("serving", 6, 100), 1);
  EXPECT_EQ(positions(six, 0), (Positions{97, 98, 99, 100, -1, -1}));
  const Plan eight = make_plan(launch_case("serving", 8, 100, 3), 1);
  EXPECT_EQ(positions(eight, 0), (Positions{97, 98, 99, 100, 97, 98, 99, 100}));
  EXPECT_EQ(positions(eight, 2),
            (Positions{105, 106, 107, 108, 105, 106, 107, 108}));
  EXPECT_EQ(requests(eight), (Requests{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(eight.requests, 2);
  EXPECT_EQ(positions(make_plan(launch_case("serving", 2, 100), 1), 1),
            (Positions{101, -1}));
}

TEST(Plan, Mixed) {
  const Plan plan = make_plan(launch_case("mixed", 8, 8447), 1);
  EXPECT_EQ(positions(plan, 0),
            (Positions{8447, 1022, 6335, 2047, 4223, 2048, 2046, 0}));
  EXPECT_EQ(positions(plan, 1),
            (Positions{8448, 1023, 6336, 2048, 4224, 2049, 2047, 1}));
  EXPECT_EQ(requests(plan), (Requests{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(positions(make_plan(launch_case("mixed", 8, 100), 1), 0),
            (Positions{100, 100, 75, 100, 50, 100, 100, 0}));
}

TEST(Plan, Chain) {
  EXPECT_EQ(positions(make_plan(launch_case("chain", 4, 100), 1), 0),
            (Positions{97, 98, 99, 100}));
  const Plan start = make_plan(launch_case("chain", 4, 1), 1);
  EXPECT_EQ(positions(start, 0), (Positions{-1, -1, 0, 1}));
  EXPECT_EQ(requests(start), (Requests{-1, -1, 0, 0}));
  EXPECT_EQ(positions(start, 1), (Positions{2, 3, 4, 5}));
  EXPECT_EQ(requests(make_plan(launch_case("chain", 8, 100), 1)),
            (Requests(8, 0)));
}

TEST(Plan, Padded) {
  EXPECT_EQ(positions(make_plan(launch_case("padded", 2, 8447), 1), 0),
            (Positions{8447, -1}));
  EXPECT_EQ(positions(make_plan(launch_case("padded", 4, 8447), 1), 0),
            (Positions{8447, 4223, -1, -1}));
  EXPECT_EQ(positions(make_plan(launch_case("padded", 5, 8447), 1), 0),
            (Positions{8447, 4223, -1, 1022, -1}));
  const Plan eight = make_plan(launch_case("padded", 8, 100), 1);
  EXPECT_EQ(positions(eight, 0), (Positions{-1, 96, 97, 98, -1, 99, 100, -1}));
  EXPECT_EQ(positions(eight, 1),
            (Positions{-1, 101, 102, 103, -1, 104, 105, -1}));
  EXPECT_EQ(requests(eight), (Requests{-1, 0, 0, 0, -1, 0, 0, -1}));
  const Plan one = make_plan(launch_case("padded", 1, 100), 1);
  EXPECT_EQ(one.skipped,
            "row set padded has no live row at --rows 1 --pos 100");
  EXPECT_EQ(eight.skipped, "");
}

// pages(8447) = 132, a quarter is 33; row r shares min(33, p_r / 64) pages,
// rows 0 and 1 none.
TEST(Plan, MixedSharesFirstPagesOfRowZero) {
  const Plan plan = make_plan(launch_case("mixed", 8, 8447), 1);
  const std::vector<int64_t> shared = {0, 0, 33, 31, 33, 32, 31, 0};
  const auto& table = plan.steps[0].page_table;
  const auto width = static_cast<size_t>(plan.table_width);
  for (size_t r = 1; r < 8; ++r) {
    const auto own =
        static_cast<size_t>(plan.steps[0].rows[r].position / 64 + 1);
    for (size_t j = 0; j < own; ++j)
      EXPECT_EQ(table[r * width + j] == table[j],
                static_cast<int64_t>(j) < shared[r])
          << r << " " << j;
  }
}

TEST(Plan, SizesFollowFromTheLongestRow) {
  const Plan plan =
      make_plan(launch_case("serving", 4, 8447), 1);  // step 1 ends at 8451
  EXPECT_EQ(plan.max_keys, 8452);
  EXPECT_EQ(plan.rope_positions, 8452);
  EXPECT_EQ(plan.score_stride % 4, 0);
  EXPECT_GE(plan.score_stride, 8452 + 64);
  EXPECT_GT(plan.table_width, 8451 / 64 + 1);
  EXPECT_GT(plan.pages, 1 + 133);
}

// With hidden 6144, q_lora 2048, 32 heads, T = 8, R = 4: bytes of each tensor
// by its shape.
TEST(Plan, BytesAddUp) {
  const Plan plan = make_plan(launch_case("serving", 4, 8447), 1);
  const uint64_t weights = 4 * 6144 + 2 * 2048 * 6144 + 4 * 2048 +
                           2 * 4096 * 2048 + 2 * 128 * 6144 + 2 * 4 * 128 +
                           4 * 32 * 6144;
  const uint64_t cache = static_cast<uint64_t>(plan.pages) * 8448;
  const uint64_t rope = 2 * 4 * 32 * 8452;
  const uint64_t step = 4 * 4 * 6144 + 8 * 4 * 4 * 6144 + 3 * 4 * 4 +
                        4 * 4 * static_cast<uint64_t>(plan.table_width) + 4 * 4;
  const uint64_t outputs = 4 * (4 * static_cast<uint64_t>(plan.score_stride) +
                                static_cast<uint64_t>(plan.list_entries));
  EXPECT_EQ(plan.bytes, 2 * (weights + cache) + rope + step + outputs);
}

TEST(Plan, CachedAndRecentSlots) {
  const auto states_by_position = [](const Plan& plan, int64_t count) {
    std::vector<std::pair<bool, bool>> result;
    for (int64_t p = 0; p < count; ++p) {
      const PageState& state = plan.page_states[static_cast<size_t>(
          plan.steps[0].page_table[static_cast<size_t>(p / 64)])];
      result.push_back({(state.cached >> (p % 64) & 1) != 0,
                        (state.recent >> (p % 64) & 1) != 0});
    }
    return result;
  };
  // Rows 8446 and 8447 of one request: keys 0..8445 are cached, the last 4,096
  // of them from 4350 on.
  Case c = launch_case("chain", 2, 8447);
  auto states = states_by_position(make_plan(c, 1), 8448);
  for (int64_t p = 0; p < 8448; ++p) {
    EXPECT_EQ(states[static_cast<size_t>(p)].first, p < 8446) << p;
    EXPECT_EQ(states[static_cast<size_t>(p)].second, p >= 4350 && p < 8446)
        << p;
  }
  // Scoring alone stores nothing: all 8,448 are there.
  c = case_of(
      "--stage score --rows 2 --cache recent --rowset chain --pos 8447");
  states = states_by_position(make_plan(c, 1), 8448);
  for (int64_t p = 0; p < 8448; ++p) {
    EXPECT_TRUE(states[static_cast<size_t>(p)].first) << p;
    EXPECT_EQ(states[static_cast<size_t>(p)].second, p >= 4352) << p;
  }
}

TEST(Plan, SharedPagesAreRecentForAllTheirRequests) {
  // Row 3 at 2047: all its cached keys are among its last 4,096, so request 0's
  // first 31 pages are recent as well.
  const Plan plan = make_plan(launch_case("mixed", 4, 8447), 1);
  const auto& state =
      plan.page_states[static_cast<size_t>(plan.steps[0].page_table[30])];
  EXPECT_EQ(state.recent, ~uint64_t{0});
  EXPECT_EQ(state.cached, ~uint64_t{0});
}

TEST(Plan, HoldsItsInvariants) {
  const bool held = rc::check("pages, slots, stale entries, lists", [] {
    const auto& sets = row_sets();
    Case c = launch_case(
        std::string(sets[*rc::gen::inRange<size_t>(0, sets.size())].name),
        *rc::gen::inRange(1, 9), *rc::gen::inRange<int64_t>(0, 3000),
        *rc::gen::inRange(1, 4));
    c.geometry.k = *rc::gen::element(1, 100, 2048);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const Plan plan = make_plan(c, seed);
    RC_ASSERT(make_plan(c, seed).steps[0].page_table ==
              plan.steps[0].page_table);
    const auto width = static_cast<size_t>(plan.table_width);
    // The full table of each request, from its row at the greatest position.
    std::map<int, std::vector<int32_t>> tables;
    for (const Step& step : plan.steps) {
      for (size_t r = 0; r < step.rows.size(); ++r) {
        const Row& row = step.rows[r];
        if (!row.live) continue;
        std::vector<int32_t> live(
            step.page_table.begin() + static_cast<long>(r * width),
            step.page_table.begin() + static_cast<long>(r * width) +
                row.position / 64 + 1);
        auto& known = tables[row.request];
        const size_t common = std::min(known.size(), live.size());
        RC_ASSERT(std::equal(live.begin(),
                             live.begin() + static_cast<long>(common),
                             known.begin()));
        if (live.size() > known.size()) known = live;
      }
    }
    std::map<int32_t, std::set<int>> owners;
    for (const auto& [request, table] : tables) {
      RC_ASSERT(std::set<int32_t>(table.begin(), table.end()).size() ==
                table.size());
      for (const int32_t page : table) owners[page].insert(request);
    }
    RC_ASSERT(!owners.contains(0));
    // In brackets: RapidCheck takes the expression apart, and would not stop at
    // the first half.
    RC_ASSERT((owners.empty() || owners.rbegin()->first < plan.pages));
    RC_ASSERT(static_cast<int>(owners.size()) + 1 <
              plan.pages);  // some are unused
    for (const Step& step : plan.steps) {
      std::set<int64_t> slots;
      for (size_t r = 0; r < step.rows.size(); ++r) {
        const Row& row = step.rows[r];
        const auto entry = [&](size_t j) {
          return step.page_table[r * width + j];
        };
        if (!row.live) {
          RC_ASSERT(row.request == -1 && row.position == -1 && row.slot == -1);
          for (size_t j = 0; j < width; ++j) RC_ASSERT(entry(j) == 0);
          continue;
        }
        RC_ASSERT(row.slot ==
                  int64_t{entry(static_cast<size_t>(row.position / 64))} * 64 +
                      row.position % 64);
        RC_ASSERT(slots.insert(row.slot).second);
        RC_ASSERT(
            owners[static_cast<int32_t>(row.slot / 64)] ==
            std::set<int>{row.request});  // a page being written is unshared
        RC_ASSERT(width > static_cast<size_t>(row.position / 64 + 1));
        for (size_t j = static_cast<size_t>(row.position / 64) + 1; j < width;
             ++j) {
          RC_ASSERT(owners.contains(entry(j)));
          if (tables.size() > 1) {
            const auto& own = tables[row.request];
            const bool others_have_more = std::any_of(
                tables.begin(), tables.end(), [&](const auto& other) {
                  return other.first != row.request &&
                         std::any_of(other.second.begin(), other.second.end(),
                                     [&](int32_t page) {
                                       return std::find(own.begin(), own.end(),
                                                        page) == own.end();
                                     });
                });
            if (others_have_more)
              RC_ASSERT(std::find(own.begin(), own.end(), entry(j)) ==
                        own.end());
          }
        }
      }
      // List places: k entries each, apart from one another and from both ends
      // by guards.
      std::vector<int32_t> places = step.indptr;
      RC_ASSERT(places.size() == static_cast<size_t>(c.rows));
      if (c.rows > 1) RC_ASSERT(!std::is_sorted(places.begin(), places.end()));
      std::sort(places.begin(), places.end());
      int64_t free = 0;
      for (const int32_t place : places) {
        RC_ASSERT(place > free);
        free = place + c.geometry.k;
      }
      RC_ASSERT(free < plan.list_entries);
    }
    // Cached before step 0: positions below each request's first live row.
    std::map<int, int64_t> first;
    for (const Row& row : plan.steps[0].rows)
      if (row.live)
        first[row.request] = std::min(
            first.contains(row.request) ? first[row.request] : INT64_MAX,
            row.position);
    std::set<int64_t> expected, cached;
    for (const auto& [request, count] : first)
      for (int64_t p = 0; p < count; ++p)
        expected.insert(int64_t{tables[request][static_cast<size_t>(p / 64)]} *
                            64 +
                        p % 64);
    for (size_t page = 0; page < plan.page_states.size(); ++page)
      for (int64_t i = 0; i < 64; ++i)
        if ((plan.page_states[page].cached >> i & 1) != 0)
          cached.insert(static_cast<int64_t>(page) * 64 + i);
    RC_ASSERT(cached == expected);
  });
  EXPECT_TRUE(held);
}

TEST(Plan, DependsOnTheSeedButNotOnT) {
  Case a = launch_case("mixed", 4, 8447), b = a;
  b.tp = 4;
  EXPECT_EQ(make_plan(a, 1).steps[1].page_table,
            make_plan(b, 1).steps[1].page_table);
  EXPECT_EQ(make_plan(a, 1).steps[1].indptr, make_plan(b, 1).steps[1].indptr);
  EXPECT_NE(make_plan(a, 1).steps[0].page_table,
            make_plan(a, 2).steps[0].page_table);
}

TEST(Plan, PassingTheLongestRowNamesPos) {
  EXPECT_EQ(
      sentence([] { make_plan(launch_case("chain", 2, kMaxKeys - 1), 1); }),
      "--pos 1048639 gives a row of 1048642 keys on the last of 2 steps; at "
      "most 1048640 are possible");
}

TEST(Plan, OfSelectingAloneSaysWhenTheFamilyIsLonger) {
  const Plan plan = make_plan(
      case_of("--stage select --rows 2 --rows-from coarse-bin-4097 --pos 4000"),
      1);
  EXPECT_EQ(
      plan.skipped,
      "family coarse-bin-4097 needs 4098 scores and --pos 4000 gives 4001");
  EXPECT_EQ(
      make_plan(case_of("--stage select --rows 2 --rows-from coarse-bin-4097"),
                1)
          .skipped,
      "");
}

}  // namespace
}  // namespace exact_topk::cases
