// SPDX-License-Identifier: Apache-2.0
//
// layout.h - where the work of one head launch lies: row groups, runs of pages,
// slices of positions, and which block does what.
//
// The head arm is one launch of persistent blocks (SPEC section 4). Nothing is
// scheduled at run time: every block derives from these functions which tasks
// are its own, does them stage after stage, and waits only for data that a task
// of an earlier stage, or another slice in the same gather, publishes. The
// functions are constexpr and know no device, so that tests can lay out every
// grid and prove, as a graph, that no placement can deadlock.
//
// Stages, in the order in which every block walks them:
//   input        one task a live row: hidden state, RMSNorm, x
//   down         tiles of 16 outputs of q_a, then wk, then weights_proj, all
//   rows at once; q_a first: the longest chain hangs on it norm         one
//   task a live row: RMSNorm of q_a x, q_lora up           tiles of 16 outputs
//   of wq_b, all rows at once: the mailbox key          one task a live row:
//   index key into the cache, and as tagged pairs query        one task a live
//   row and 8 heads: rope, Hadamard, bf16 score        one task a group and run
//   of pages select       one task a row and slice of positions
//
// Score hand-off: a run stores its scores plainly, then, after a block barrier,
// publishes one word with release order; a slice acquires the words of every
// run that overlaps it before it reads a score. (The alternative, a tagged pair
// a score, doubles the bytes that scoring writes.)
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace exact_topk::kernels::layout {

inline constexpr int kPageTokens = 64;  // keys of a page
inline constexpr int kMaxRows = 8;      // rows of a launch
inline constexpr int kGroupRows = 4;    // rows scored in one pass, at most
inline constexpr int kMaxRuns = 256;    // runs of one request's pages, at most
inline constexpr int kMinRunPages =
    2;  // pages of a run, at least (one where the request has no more)
inline constexpr int kBatchPages =
    6;  // pages copied to LDS at a time: two for each of a block's warpgroups
inline constexpr int kMaxSlices = 64;  // slices of one row, at most
inline constexpr int kKeysPerSlice =
    1024;  // a slice is not cut below about this many keys
inline constexpr int kMaxSliceKeys = 65535;  // counts travel in 16 bits
inline constexpr int kSliceRoom =
    8192;  // radix keys that a slice holds in LDS; longer slices go through it
           // in chunks
inline constexpr int kTileOutputs = 16;  // outputs of a front tile
inline constexpr int kQueryHeads = 8;    // heads of an index query task

// Quotient and remainder of numbers from 0 to 2^31, which all numbers here are:
// a GPU divides 32 bits several times as fast as 64.
EXACT_TOPK_HOST_DEVICE constexpr int64_t quotient(int64_t a, int64_t b) {
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}
EXACT_TOPK_HOST_DEVICE constexpr int64_t remainder(int64_t a, int64_t b) {
  return static_cast<uint32_t>(a) % static_cast<uint32_t>(b);
}
EXACT_TOPK_HOST_DEVICE constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return quotient(a + b - 1, b);
}
EXACT_TOPK_HOST_DEVICE constexpr int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
EXACT_TOPK_HOST_DEVICE constexpr int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// A half-open range of positions, pages or tasks.
struct Range {
  int64_t begin;  // first
  int64_t end;    // one past the last
  EXACT_TOPK_HOST_DEVICE constexpr int64_t size() const { return end - begin; }
};

// ---- slices
// -------------------------------------------------------------------------------------------------------------------

// Slices of a row of n > 0 keys where `rows` rows share `blocks` blocks: about
// one per 1,024 keys, at most 64, no more than the blocks that a row can have
// for itself, and never so few that a slice's counts would pass 16 bits.
EXACT_TOPK_HOST_DEVICE constexpr int select_slices(int64_t n, int rows,
                                                   int blocks,
                                                   int most = kMaxSlices) {
  const int64_t pages = ceil_div(n, kPageTokens);
  const int64_t fewest = ceil_div(pages, kMaxSliceKeys / kPageTokens);
  const int64_t share = larger(1, quotient(blocks, larger(1, rows)));
  const int64_t wanted =
      smaller(smaller(most, share), ceil_div(n, kKeysPerSlice));
  return static_cast<int>(larger(fewest, wanted));
}

// True where n keys can be cut into this many slices: none empty, all counts
// within 16 bits.
EXACT_TOPK_HOST_DEVICE constexpr bool valid_split(int64_t n, int slices) {
  const int64_t pages = ceil_div(n, kPageTokens);
  return slices >= 1 && slices <= kMaxSlices && slices <= pages &&
         ceil_div(pages, slices) * kPageTokens <= kMaxSliceKeys;
}

// Positions of slice i. Cuts fall between pages, so that every slice starts on
// a 16-byte boundary of its score row.
EXACT_TOPK_HOST_DEVICE constexpr Range slice(int64_t n, int slices, int i) {
  const int64_t pages = ceil_div(n, kPageTokens);
  return {quotient(pages * i, slices) * kPageTokens,
          smaller(n, quotient(pages * (i + 1), slices) * kPageTokens)};
}

// Slice that holds a position: the inverse of slice().
EXACT_TOPK_HOST_DEVICE constexpr int slice_of(int64_t n, int slices,
                                              int64_t position) {
  const int64_t pages = ceil_div(n, kPageTokens);
  return static_cast<int>(
      quotient((position / kPageTokens + 1) * slices - 1, pages));
}

// Keys of the longest slice.
EXACT_TOPK_HOST_DEVICE constexpr int64_t longest_slice(int64_t n, int slices) {
  return smaller(n, ceil_div(ceil_div(n, kPageTokens), slices) * kPageTokens);
}

EXACT_TOPK_HOST_DEVICE constexpr int slice_chunks(int64_t slice_keys) {
  return static_cast<int>(ceil_div(slice_keys, kSliceRoom));
}

// First block of row `rank` (its rank among the rows that select): rows are
// spread evenly, slice i sits i blocks further.
EXACT_TOPK_HOST_DEVICE constexpr int slice_block(int rank, int rows, int blocks,
                                                 int i) {
  const int64_t first = quotient(int64_t{rank} * blocks, larger(1, rows));
  return static_cast<int>(remainder(first + i, blocks));
}

// ---- runs of pages
// ------------------------------------------------------------------------------------------------------------

// Runs that the first `keys` keys of a request are scored in: at least 2 pages
// each, at most min(256, blocks).
EXACT_TOPK_HOST_DEVICE constexpr int score_runs(int64_t keys, int blocks) {
  const int64_t pages = ceil_div(keys, kPageTokens);
  return static_cast<int>(
      larger(1, smaller(smaller(kMaxRuns, blocks), pages / kMinRunPages)));
}

// Pages of run i.
EXACT_TOPK_HOST_DEVICE constexpr Range run_pages(int64_t keys, int runs,
                                                 int i) {
  const int64_t pages = ceil_div(keys, kPageTokens);
  return {quotient(pages * i, runs), quotient(pages * (i + 1), runs)};
}

// Run that holds a page: the inverse of run_pages().
EXACT_TOPK_HOST_DEVICE constexpr int run_of(int64_t keys, int runs,
                                            int64_t page) {
  const int64_t pages = ceil_div(keys, kPageTokens);
  return static_cast<int>(quotient((page + 1) * runs - 1, pages));
}

EXACT_TOPK_HOST_DEVICE constexpr int run_batches(int64_t pages) {
  return static_cast<int>(ceil_div(pages, kBatchPages));
}

// Block of run i of the group whose first row is `first_row`: groups start
// apart so that short requests spread over the grid.
EXACT_TOPK_HOST_DEVICE constexpr int run_block(int first_row, int rows,
                                               int blocks, int i) {
  const int64_t first = quotient(int64_t{first_row} * blocks, larger(1, rows));
  return static_cast<int>(remainder(first + i, blocks));
}

// ---- row groups
// ---------------------------------------------------------------------------------------------------------------

// What the group rule looks at, as a launch's inputs give it.
struct RowsView {
  int rows;                   // R
  const int32_t* request;     // [R], -1 for a pad row
  const int32_t* position;    // [R], -1 for a pad row
  const int32_t* slot;        // [R], -1 for a pad row
  const int32_t* page_table;  // [R][table_width]
  int table_width;            // columns of page_table

  EXACT_TOPK_HOST_DEVICE constexpr bool live(int row) const {
    return request[row] >= 0;
  }
  EXACT_TOPK_HOST_DEVICE constexpr int64_t keys(int row) const {
    return live(row) ? int64_t{position[row]} + 1 : 0;
  }
  EXACT_TOPK_HOST_DEVICE constexpr int64_t slot_of(int row, int64_t p) const {
    return int64_t{page_table[int64_t{row} * table_width + p / kPageTokens]} *
               kPageTokens +
           p % kPageTokens;
  }
};

// Whether row i may be scored in one pass with row i-1: both live, later in the
// same request's pages. The page that row i-1 writes is its request's alone, so
// finding i-1's own slot at i-1's position in row i's table proves the request;
// a request number alone would not prove that the two table rows agree.
EXACT_TOPK_HOST_DEVICE constexpr bool joins(const RowsView& v, int i) {
  return i > 0 && v.live(i) && v.live(i - 1) &&
         v.position[i - 1] < v.position[i] &&
         v.slot_of(i, v.position[i - 1]) == v.slot[i - 1];
}

// Rows scored in one pass.
struct Group {
  int first;  // first row
  int rows;   // how many, 1..4
};

// All groups of a launch, in row order; pad rows belong to none.
struct Groups {
  int count;              // how many
  Group group[kMaxRows];  // the groups
};

// The groups of `rows` rows, from bit i of `live` and of `joined`: whether row
// i is live, and joins(v, i).
EXACT_TOPK_HOST_DEVICE constexpr Groups groups_of(int rows, unsigned live,
                                                  unsigned joined) {
  Groups groups{};
  for (int i = 0; i < rows; ++i) {
    if ((live >> i & 1u) == 0) continue;
    if ((joined >> i & 1u) != 0 && groups.count > 0 &&
        groups.group[groups.count - 1].rows < kGroupRows) {
      ++groups.group[groups.count - 1].rows;
    } else {
      groups.group[groups.count++] = {i, 1};
    }
  }
  return groups;
}

EXACT_TOPK_HOST_DEVICE constexpr Groups row_groups(const RowsView& v) {
  unsigned live = 0;
  unsigned joined = 0;
  for (int i = 0; i < v.rows; ++i) {
    live |= static_cast<unsigned>(v.live(i)) << i;
    joined |= static_cast<unsigned>(joins(v, i)) << i;
  }
  return groups_of(v.rows, live, joined);
}

// The group of a live row.
EXACT_TOPK_HOST_DEVICE constexpr Group group_of(const Groups& groups, int row) {
  for (int i = 0; i < groups.count; ++i) {
    const Group& group = groups.group[i];
    if (row >= group.first && row < group.first + group.rows) return group;
  }
  return {row, 1};
}

// Whether row `writer`'s own key is one that a group ending with row `reader`
// sees, at position[writer] of reader's table: it must then be taken from the
// tagged pairs, because the cache store may not be visible yet. All rows of the
// launch count, not only the group's.
EXACT_TOPK_HOST_DEVICE constexpr bool patches(const RowsView& v, int reader,
                                              int writer) {
  return v.live(writer) && v.position[writer] <= v.position[reader] &&
         v.slot_of(reader, v.position[writer]) == v.slot[writer];
}

// ---- placement of the front
// ---------------------------------------------------------------------------------------------------

// Tiles of a projection with this many outputs.
EXACT_TOPK_HOST_DEVICE constexpr int tiles(int outputs,
                                           int tile = kTileOutputs) {
  return static_cast<int>(ceil_div(outputs, tile));
}

// Task t of a stage runs on block t mod blocks; each block takes its tasks in
// ascending order.
EXACT_TOPK_HOST_DEVICE constexpr int task_block(int64_t task, int blocks) {
  return static_cast<int>(remainder(task, blocks));
}

// Block of a row in a stage with one task a row: the last ones, which have the
// fewest tiles, because everybody waits for a row's norm.
EXACT_TOPK_HOST_DEVICE constexpr int row_block(int row, int blocks) {
  return blocks - 1 - static_cast<int>(remainder(row, blocks));
}

}  // namespace exact_topk::kernels::layout
