// SPDX-License-Identifier: Apache-2.0
//
// The head arm's layout, held to SPEC section 4: slices and runs tile a row
// once and in order, groups follow the page tables, and no placement can
// deadlock for any grid of 1..256 blocks and 1..8 rows.
#include "kernels/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace exact_topk::kernels::layout {
namespace {

constexpr int64_t kLongest = (int64_t{1} << 20) + 64;

std::vector<int64_t> edge_lengths() {
  std::vector<int64_t> lengths = {1, 2, 36000, 300000, kLongest - 1, kLongest};
  for (int64_t edge : {64, 128, 1024, 2048, 4096, 8192, 8447, 32768, 65472,
                       65535, 65536, 131072, 262144, 524288, 1 << 20}) {
    for (int64_t d : {-1, 0, 1}) lengths.push_back(edge + d);
  }
  return lengths;
}

TEST(Slices, TileEveryRowOnceInOrder) {
  for (int64_t n : edge_lengths()) {
    for (int rows = 1; rows <= kMaxRows; ++rows) {
      for (int blocks = 1; blocks <= 256; ++blocks) {
        const int slices = select_slices(n, rows, blocks);
        ASSERT_GE(slices, 1);
        ASSERT_LE(slices, kMaxSlices)
            << n << " keys on " << blocks << " blocks";
        ASSERT_TRUE(valid_split(n, slices))
            << n << " keys, " << slices << " slices";
        int64_t next = 0;
        for (int i = 0; i < slices; ++i) {
          const Range r = slice(n, slices, i);
          ASSERT_EQ(r.begin, next);
          ASSERT_EQ(r.begin % 4, 0) << "a slice starts on a 16-byte boundary";
          ASSERT_GT(r.size(), 0) << "slice " << i << " of " << slices << " of "
                                 << n << " keys is empty";
          ASSERT_LE(r.size(), kMaxSliceKeys);
          ASSERT_EQ(slice_of(n, slices, r.begin), i);
          ASSERT_EQ(slice_of(n, slices, r.end - 1), i);
          next = r.end;
        }
        ASSERT_EQ(next, n);
      }
    }
  }
}

TEST(Slices, AboutOnePerThousandKeysWhereBlocksAllow) {
  EXPECT_EQ(select_slices(36000, 1, 256), 36);
  EXPECT_EQ(select_slices(36000, 7, 256), 36);
  EXPECT_EQ(select_slices(36000, 8, 256), 32);  // 32 blocks a row
  EXPECT_EQ(select_slices(8448, 1, 256), 9);
  EXPECT_EQ(select_slices(524288, 4, 256), 64);
  EXPECT_EQ(select_slices(524288, 8, 256), 32);
  EXPECT_EQ(select_slices(524288, 8, 132), 16);
  EXPECT_EQ(select_slices(1, 8, 1), 1);
}

TEST(Slices, RefusesCountsBeyondSixteenBits) {
  EXPECT_TRUE(valid_split(65472, 1));   // 1,023 pages
  EXPECT_FALSE(valid_split(65473, 1));  // a 1,024th page could hold 65,536 keys
  EXPECT_FALSE(valid_split(kLongest, 16));
  EXPECT_TRUE(valid_split(kLongest, select_slices(kLongest, 8, 1)));
  EXPECT_FALSE(valid_split(128, 3))
      << "more slices than pages leaves one empty";
  EXPECT_FALSE(valid_split(1 << 20, 65));
}

TEST(Slices, TwoChunksAtThreeHundredThousandOnEightRows) {
  const int64_t n = 300000;
  const Range first = slice(n, select_slices(n, 8, 256), 0);
  EXPECT_EQ(slice_chunks(first.size()), 2);
  EXPECT_EQ(slice_chunks(kSliceRoom), 1);
  EXPECT_EQ(slice_chunks(kSliceRoom + 1), 2);
}

TEST(Slices, OneABlockWhereBlocksSuffice) {
  for (int blocks = 8; blocks <= 256; ++blocks) {
    for (int rows = 1; rows <= kMaxRows; ++rows) {
      std::vector<int> owners(static_cast<size_t>(blocks), 0);
      for (int rank = 0; rank < rows; ++rank) {
        // short enough that 16 bits never force more slices than a row's share
        // of blocks
        const int slices = select_slices(60000, rows, blocks);
        for (int i = 0; i < slices; ++i)
          ++owners[static_cast<size_t>(slice_block(rank, rows, blocks, i))];
      }
      ASSERT_LE(*std::max_element(owners.begin(), owners.end()), 1)
          << rows << " rows on " << blocks << " blocks";
    }
  }
}

TEST(Runs, TilePagesOnceInOrder) {
  for (int64_t keys : edge_lengths()) {
    const int64_t pages = (keys + 63) / 64;
    for (int blocks = 1; blocks <= 256; ++blocks) {
      const int runs = score_runs(keys, blocks);
      ASSERT_GE(runs, 1);
      ASSERT_LE(runs, std::min(256, blocks));
      int64_t next = 0;
      for (int i = 0; i < runs; ++i) {
        const Range r = run_pages(keys, runs, i);
        ASSERT_EQ(r.begin, next);
        ASSERT_GE(r.size(), std::min<int64_t>(2, pages));
        ASSERT_EQ(run_of(keys, runs, r.begin), i);
        ASSERT_EQ(run_of(keys, runs, r.end - 1), i);
        next = r.end;
      }
      ASSERT_EQ(next, pages);
    }
  }
}

TEST(Runs, ThreeBatchesAtThreeHundredThousandOnAFullGrid) {
  const int64_t keys = 300000;
  const int runs = score_runs(keys, 256);
  EXPECT_EQ(runs, 256);
  EXPECT_EQ(run_batches(run_pages(keys, runs, 0).size()), 3);
  EXPECT_EQ(run_batches(6), 1);
  EXPECT_EQ(run_batches(7), 2);
}

TEST(Runs, NoBlockHasTwoRunsOfAGroup) {
  for (int blocks = 1; blocks <= 256; ++blocks) {
    for (int first = 0; first < kMaxRows; ++first) {
      const int runs = score_runs(1 << 20, blocks);
      std::vector<bool> taken(static_cast<size_t>(blocks), false);
      for (int i = 0; i < runs; ++i) {
        const auto block =
            static_cast<size_t>(run_block(first, kMaxRows, blocks, i));
        ASSERT_LT(block, taken.size());
        ASSERT_FALSE(taken[block]);
        taken[block] = true;
      }
    }
  }
}

// A launch written down by hand: page tables of `width` columns, rows of
// (request, position), each request with its own pages.
struct Rows {
  int width;
  std::vector<int32_t> request, position, slot, table;

  void add(int32_t req, int32_t pos, std::vector<int32_t> pages) {
    request.push_back(req);
    position.push_back(pos);
    pages.resize(static_cast<size_t>(width),
                 99);  // a stale tail: some other request's page
    slot.push_back(
        pos < 0 ? -1 : pages[static_cast<size_t>(pos / 64)] * 64 + pos % 64);
    table.insert(table.end(), pages.begin(), pages.end());
  }
  RowsView view() const {
    return {static_cast<int>(request.size()),
            request.data(),
            position.data(),
            slot.data(),
            table.data(),
            width};
  }
};

std::vector<std::array<int, 2>> groups_of(const Rows& rows) {
  const Groups g = row_groups(rows.view());
  std::vector<std::array<int, 2>> out;
  for (int i = 0; i < g.count; ++i)
    out.push_back({g.group[i].first, g.group[i].rows});
  return out;
}

using Expected = std::vector<std::array<int, 2>>;

TEST(Groups, ChainOfEightIsTwoGroupsOfFour) {
  Rows rows{.width = 6, .request = {}, .position = {}, .slot = {}, .table = {}};
  for (int i = 0; i < 8; ++i) rows.add(0, 120 + i, {7, 3, 5});
  EXPECT_EQ(groups_of(rows), (Expected{{0, 4}, {4, 4}}));
  // rows of the second group read keys that the first group's rows write
  for (int writer = 0; writer < 8; ++writer) {
    for (int reader = 0; reader < 8; ++reader)
      EXPECT_EQ(patches(rows.view(), reader, writer), writer <= reader);
  }
}

TEST(Groups, ServingRowsOfTwoRequests) {
  Rows rows{.width = 6, .request = {}, .position = {}, .slot = {}, .table = {}};
  for (int i = 0; i < 4; ++i) rows.add(0, 60 + i, {7});
  for (int i = 0; i < 4; ++i) rows.add(1, 60 + i, {8});
  EXPECT_EQ(groups_of(rows), (Expected{{0, 4}, {4, 4}}));
  EXPECT_FALSE(patches(rows.view(), 7, 0)) << "another request's key";
}

TEST(Groups, APadRowSplitsAChain) {
  Rows rows{.width = 4, .request = {}, .position = {}, .slot = {}, .table = {}};
  rows.add(-1, -1, {0});
  for (int i = 1; i < 4; ++i) rows.add(0, 100 + i, {7, 3});
  rows.add(-1, -1, {0});
  for (int i = 5; i < 7; ++i) rows.add(0, 99 + i, {7, 3});
  rows.add(-1, -1, {0});
  EXPECT_EQ(groups_of(rows), (Expected{{1, 3}, {5, 2}}));
  EXPECT_TRUE(patches(rows.view(), 6, 1))
      << "the pad row splits the group, not the request";
}

TEST(Groups, SharedPrefixesDoNotJoin) {
  Rows rows{.width = 6, .request = {}, .position = {}, .slot = {}, .table = {}};
  rows.add(0, 64 * 3 + 5, {7, 3, 5, 9});
  rows.add(1, 64 * 3 + 6,
           {7, 3, 5, 10});  // shares three pages, writes its own fourth
  EXPECT_EQ(groups_of(rows), (Expected{{0, 1}, {1, 1}}));
  EXPECT_FALSE(patches(rows.view(), 1, 0));
}

TEST(Groups, AStaleTailIsNotFollowed) {
  Rows rows{.width = 4, .request = {}, .position = {}, .slot = {}, .table = {}};
  rows.add(0, 64 * 3, {7, 3, 5, 99});  // writes page 99
  rows.add(1, 70, {8, 9});             // its stale tail names page 99 as well
  EXPECT_EQ(groups_of(rows), (Expected{{0, 1}, {1, 1}}))
      << "row 1 does not see position 192";
  EXPECT_FALSE(patches(rows.view(), 1, 0));
}

TEST(Groups, PositionsMustRise) {
  Rows rows{.width = 2, .request = {}, .position = {}, .slot = {}, .table = {}};
  rows.add(0, 70, {7, 3});
  rows.add(0, 70, {7, 3});
  rows.add(0, 69, {7, 3});
  EXPECT_EQ(groups_of(rows), (Expected{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(Groups, EveryLiveRowIsInOneGroup) {
  rc::check("groups partition the live rows", [] {
    const int count = *rc::gen::inRange(1, 9);
    Rows rows{
        .width = 4, .request = {}, .position = {}, .slot = {}, .table = {}};
    std::array<int32_t, 3> next = {10, 100, 150};
    for (int i = 0; i < count; ++i) {
      const int request = *rc::gen::inRange(-1, 3);
      if (request < 0) {
        rows.add(-1, -1, {0});
      } else {
        const auto q = static_cast<size_t>(request);
        rows.add(request, next[q]++,
                 {10 + request, 20 + request, 30 + request, 40 + request});
      }
    }
    std::vector<int> covered(static_cast<size_t>(count), 0);
    for (const auto& [first, size] : groups_of(rows)) {
      RC_ASSERT(size >= 1 && size <= kGroupRows);
      for (int i = first; i < first + size; ++i) {
        ++covered[static_cast<size_t>(i)];
        RC_ASSERT(rows.request[static_cast<size_t>(i)] ==
                  rows.request[static_cast<size_t>(first)]);
      }
    }
    for (int i = 0; i < count; ++i) {
      RC_ASSERT(covered[static_cast<size_t>(i)] ==
                (rows.request[static_cast<size_t>(i)] >= 0 ? 1 : 0));
    }
  });
}

// ---- deadlock
// -----------------------------------------------------------------------------------------------------------------

// Waits-for graph of a launch: nodes are things a block does, an edge a -> b
// says that b cannot finish before a has.
class Graph {
 public:
  int add() {
    after_.emplace_back();
    return static_cast<int>(after_.size()) - 1;
  }
  void edge(int before, int after) {
    after_[static_cast<size_t>(before)].push_back(after);
  }
  bool acyclic() const {
    std::vector<int> waits(after_.size(), 0);
    for (const auto& list : after_) {
      for (int node : list) ++waits[static_cast<size_t>(node)];
    }
    std::vector<int> ready;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] == 0) ready.push_back(static_cast<int>(i));
    }
    size_t done = 0;
    while (!ready.empty()) {
      const int node = ready.back();
      ready.pop_back();
      ++done;
      for (int next : after_[static_cast<size_t>(node)]) {
        if (--waits[static_cast<size_t>(next)] == 0) ready.push_back(next);
      }
    }
    return done == after_.size();
  }

 private:
  std::vector<std::vector<int>> after_;
};

// Builds the graph of a launch of `rows` rows of n keys. `publish_first` false
// plants the fault that the rule of section 4 rules out: a block polls one of
// its slices before it has published the others.
bool deadlock_free(int64_t n, int rows, int blocks, bool publish_first) {
  Graph graph;
  std::vector<int> last(static_cast<size_t>(blocks),
                        -1);  // last thing each block does
  const auto then = [&](int block) {
    const int node = graph.add();
    int& before = last[static_cast<size_t>(block)];
    if (before >= 0) graph.edge(before, node);
    before = node;
    return node;
  };
  // Front, key, query, score: a task may need any task of the stage before; all
  // of them is the strictest reading.
  int stage_done = graph.add();
  struct Stage {
    int tasks;   // in all
    bool norms;  // a task is a row's norm
  };
  const std::array<Stage, 6> front = {
      {{rows, true},
       {tiles(2048) + tiles(128) + tiles(32, 4), false},
       {rows, true},
       {tiles(4096), false},
       {rows, false},
       {rows * 4, false}}};
  for (const Stage& stage : front) {
    const int done = graph.add();
    for (int t = 0; t < stage.tasks; ++t) {
      const int node =
          then(stage.norms ? row_block(t, blocks) : task_block(t, blocks));
      graph.edge(stage_done, node);
      graph.edge(node, done);
    }
    stage_done = done;
  }
  int scored = graph.add();
  for (int row = 0; row < rows; ++row) {
    const int runs = score_runs(n, blocks);
    for (int i = 0; i < runs; ++i) {
      const int node = then(run_block(row, rows, blocks, i));
      graph.edge(stage_done, node);
      graph.edge(node, scored);
    }
  }
  constexpr int kGathers = 6;
  const int slices = select_slices(n, rows, blocks);
  for (int gather = 0; gather < kGathers; ++gather) {
    std::vector<int> all(static_cast<size_t>(rows));
    for (int& node : all) node = graph.add();
    const auto publish = [&](int row, int i) {
      const int node = then(slice_block(row, rows, blocks, i));
      if (gather == 0) graph.edge(scored, node);
      graph.edge(node, all[static_cast<size_t>(row)]);
    };
    const auto poll = [&](int row, int i) {
      graph.edge(all[static_cast<size_t>(row)],
                 then(slice_block(row, rows, blocks, i)));
    };
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < slices; ++i) {
        publish(row, i);
        if (!publish_first) poll(row, i);
      }
    }
    if (publish_first) {
      for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < slices; ++i) poll(row, i);
      }
    }
  }
  return graph.acyclic();
}

TEST(Placement, NoDeadlockForAnyGrid) {
  for (int blocks = 1; blocks <= 256; ++blocks) {
    for (int rows = 1; rows <= kMaxRows; ++rows) {
      ASSERT_TRUE(deadlock_free(kLongest, rows, blocks, true))
          << rows << " rows on " << blocks << " blocks";
    }
  }
}

TEST(Placement, PollingBeforePublishingAllWouldDeadlock) {
  EXPECT_FALSE(deadlock_free(kLongest, 2, 1, false));
  EXPECT_FALSE(deadlock_free(kLongest, 8, 4, false));
  EXPECT_TRUE(deadlock_free(60000, 1, 256, false))
      << "one slice a block: the order cannot matter";
}

}  // namespace
}  // namespace exact_topk::kernels::layout
