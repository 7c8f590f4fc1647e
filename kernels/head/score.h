// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 5 in the head arm: the rows of a group score their request's keys in
// one pass. A block takes one run of the request's pages, copies them to LDS a
// batch at a time, the next batch on its way while it scores this one, and
// patches into each batch the keys that this launch writes, for every row of
// the request in the launch: their cache stores need not be visible yet.

#include <cstdint>

#include "kernels/head/hand_off.h"
#include "kernels/head/operands.h"
#include "kernels/hip/async_copy.h"
#include "kernels/stages/score.h"

namespace exact_topk::kernels::head {

inline constexpr int kPageVectors =
    kPageBytes / 16;                 // 16-byte copies of a page
inline constexpr int kNowhere = -1;  // position of a row that patches nothing

// The rows of a group, as lanes that store scores look them up.
struct GroupRows {
  float* scores[layout::kGroupRows];  // of each row, from position 0
  int keys[layout::kGroupRows];       // n of each row
};

// LDS of a run: the group's queries and weights, two batches of pages, and
// which keys this launch writes.
struct ScoreLds {
  std::byte* query;  // hip::QueryBlock of the group
  uint8_t* pages;    // [2][batch_pages][8448]
  int* written;      // [kMaxRows], positions of the reader's keys that each row
                     // of the launch writes, or kNowhere
  GroupRows* rows;   // where the group's scores go
  int32_t* ids;      // [2][kBatchPages], of the batches' pages

  __device__ ScoreLds(std::byte* lds, int heads, int batch_pages)
      : query(lds),
        pages(reinterpret_cast<uint8_t*>(lds) + query_bytes(heads)),
        written(reinterpret_cast<int*>(pages + 2 * batch_pages * kPageBytes)),
        rows(reinterpret_cast<GroupRows*>(written + layout::kMaxRows)),
        ids(reinterpret_cast<int32_t*>(rows + 1)) {}
  __host__ __device__ static constexpr size_t query_bytes(int heads) {
    return (hip::QueryBlock::bytes(layout::kGroupRows, heads) + 15) / 16 * 16;
  }
  __host__ __device__ static constexpr size_t bytes(int heads,
                                                    int batch_pages) {
    return query_bytes(heads) +
           2 * static_cast<size_t>(batch_pages) * kPageBytes +
           layout::kMaxRows * sizeof(int) + sizeof(GroupRows) +
           2 * layout::kBatchPages * sizeof(int32_t);
  }
};

// Starts copying these pages to LDS.
__device__ inline void start_batch(const uint8_t* cache, const int32_t* ids,
                                   int pages, uint8_t* pages_lds) {
  for (int i = static_cast<int>(threadIdx.x); i < pages * kPageVectors;
       i += static_cast<int>(blockDim.x))
    hip::copy_start(pages_lds + int64_t{i} * 16,
                    cache + int64_t{ids[i / kPageVectors]} * kPageBytes +
                        i % kPageVectors * 16);
  hip::copies_close();
}

// Takes the queries and weights of the group's rows into LDS: from pairs where
// this launch makes them, else from memory.
__device__ inline void take_queries(const Operands& o,
                                    const layout::Group& group,
                                    hip::QueryBlock& block) {
  const int heads = o.score.geometry.heads;
  const int words = heads * kHeadDim / 2;
  if (!(o.parts & kKeyQueryPart)) {
    put_queries(o.score, group.first, group.rows, block);
    return block.complete();
  }
  RowCursor cursor(words);
  collect(o.pairs.query + int64_t{group.first} * words, group.rows * words,
          o.tag, [&](int i, uint32_t payload) {
            cursor.move_to(i);
            block.put(cursor.row(), cursor.item(), payload);
          });
  const int weights = group.rows * heads;
  const int64_t first = int64_t{group.first} * heads;
  const auto put_weight = [&](int i, float weight) {
    block.put_weight(i / heads, i % heads, weight);
  };
  if (o.parts & kFrontPart) {
    collect(o.pairs.w + first, weights, o.tag, [&](int i, uint32_t payload) {
      put_weight(i, bits_float(payload));
    });
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < weights;
         i += static_cast<int>(blockDim.x))
      put_weight(i, o.score.weights[first + i]);
  }
  block.complete();
}

// Overwrites, in the batch of pages [first_page, first_page + pages), the keys
// that rows of this launch write there. Returns how many.
__device__ inline int patch(const Operands& o, const int* written,
                            int64_t first_page, int pages, uint8_t* pages_lds) {
  int patched = 0;
  for (int writer = 0; writer < o.front.rows.rows; ++writer) {
    const int position = written[writer];
    const int64_t page = position / kPageKeys - first_page;
    if (position == kNowhere || page < 0 || page >= pages) continue;
    const auto slot =
        static_cast<int32_t>(page * kPageKeys + position % kPageKeys);
    collect(o.pairs.key + int64_t{writer} * (kKeyWords + 1), kKeyWords + 1,
            o.tag, [&](int i, uint32_t payload) {
              const int64_t byte =
                  i < kKeyWords
                      ? key_byte(slot, i * 4, o.score.geometry.page_layout)
                      : scale_byte(slot);
              *reinterpret_cast<uint32_t*>(pages_lds + byte) = payload;
            });
    ++patched;
  }
  return patched;
}

// Scores a batch in LDS for the group's rows: a wave takes tiles of 16 keys,
// four waves a page together.
template <int Wave, int Rows>
__device__ inline void score_batch(const Operands& o, int64_t first_page,
                                   int pages, const hip::QueryBlock& block,
                                   const uint8_t* pages_lds,
                                   const GroupRows& rows) {
  for (int tile = hip::wave<Wave>(); tile < pages * kPageTiles;
       tile += waves_of_block<Wave>()) {
    const int page = tile / kPageTiles;
    const int first = tile % kPageTiles * hip::kTile;
    const uint8_t* keys = pages_lds + page * kPageBytes;
    const auto* scales = reinterpret_cast<const float*>(keys + kScalesOffset);
    const auto position =
        static_cast<int>(first_page + page) * kPageKeys + first;
    hip::score_tile_block<Wave, Rows>(key_tile(o.score.geometry, keys, first),
                                      block, [&](int row, int key, float sum) {
                                        if (position + key < rows.keys[row])
                                          rows.scores[row][position + key] =
                                              scales[first + key] * sum;
                                      });
  }
}

// One run of one group of `Rows` rows.
template <int Wave, int Rows>
__device__ inline void score_run(const Operands& o,
                                 const layout::RowsView& view,
                                 const layout::Group& group, int run, int runs,
                                 std::byte* raw_lds) {
  const int reader = group.first + Rows - 1;
  const int64_t keys = view.keys(reader);
  const int32_t* table = o.score.rows.table(reader);
  const int heads = o.score.geometry.heads;
  const ScoreLds lds(raw_lds, heads, o.batch_pages);
  const layout::Range pages = layout::run_pages(keys, runs, run);
  const auto size_at = [&](int64_t page) {
    return static_cast<int>(layout::smaller(o.batch_pages, pages.end - page));
  };
  const auto thread = static_cast<int>(threadIdx.x);
  const auto start = [&](int64_t page, int buffer) {
    start_batch(o.score.cache, lds.ids + buffer * layout::kBatchPages,
                size_at(page), lds.pages + buffer * o.batch_pages * kPageBytes);
  };
  // This thread's page of a batch; none: 0.
  const auto id_at = [&](int64_t page) {
    return thread < o.batch_pages && page + thread < pages.end
               ? table[page + thread]
               : 0;
  };
  const auto keep_id = [&](int buffer, int32_t id) {
    if (thread < o.batch_pages)
      lds.ids[buffer * layout::kBatchPages + thread] = id;
  };
  keep_id(0, id_at(pages.begin));
  keep_id(1, id_at(pages.begin + o.batch_pages));
  __syncthreads();
  start(pages.begin, 0);
  const bool patching = (o.parts & kKeyQueryPart) != 0;
  if (patching && thread < view.rows)
    lds.written[thread] = layout::patches(view, reader, thread)
                              ? view.position[thread]
                              : kNowhere;
  if (thread < Rows) {
    const int row = group.first + thread;
    lds.rows->scores[thread] = o.score.scores + row * o.score.score_stride;
    lds.rows->keys[thread] = o.score.rows.keys(row);
  }
  hip::QueryBlock block(lds.query, Rows, heads);
  take_queries(o, group, block);
  int patched = 0;
  int buffer = 0;
  for (int64_t page = pages.begin; page < pages.end;
       page += o.batch_pages, buffer ^= 1) {
    if (page + o.batch_pages < pages.end) {
      start(page + o.batch_pages, buffer ^ 1);
      hip::copies_wait<1>();
    } else {
      hip::copies_wait<0>();
    }
    __syncthreads();
    const int size = size_at(page);
    uint8_t* batch = lds.pages + buffer * o.batch_pages * kPageBytes;
    if (patching) {
      const int now = patch(o, lds.written, page, size, batch);
      patched += now;
      if (now > 0) __syncthreads();
    }
    // Asked for before the work, kept after it: nobody reads this buffer's ids
    // any more.
    const int32_t id = id_at(page + 2 * o.batch_pages);
    score_batch<Wave, Rows>(o, page, size, block, batch, *lds.rows);
    keep_id(buffer, id);
    __syncthreads();
  }
  if (thread == 0) {
    const int at = group.first * layout::kMaxRuns + run;
    o.run_patched[at] = static_cast<uint32_t>(patched);
    hip::pair_store_release(o.pairs.run_done + at, static_cast<uint32_t>(run),
                            o.tag);
  }
}

template <int Wave>
__device__ inline void score_run(const Operands& o,
                                 const layout::RowsView& view,
                                 const layout::Group& group, int run, int runs,
                                 std::byte* lds) {
  switch (group.rows) {
    case 1:
      return score_run<Wave, 1>(o, view, group, run, runs, lds);
    case 2:
      return score_run<Wave, 2>(o, view, group, run, runs, lds);
    case 3:
      return score_run<Wave, 3>(o, view, group, run, runs, lds);
    default:
      return score_run<Wave, 4>(o, view, group, run, runs, lds);
  }
}

// This block's runs: at most one a group.
template <int Wave>
__device__ inline void score_stage(const Operands& o,
                                   const layout::RowsView& view,
                                   const layout::Groups& groups,
                                   std::byte* lds) {
  const int blocks = static_cast<int>(gridDim.x);
  for (int g = 0; g < groups.count; ++g) {
    const layout::Group& group = groups.group[g];
    const int runs =
        layout::score_runs(view.keys(group.first + group.rows - 1), blocks);
    const int first = layout::run_block(group.first, view.rows, blocks, 0);
    const int run = (static_cast<int>(blockIdx.x) - first + blocks) % blocks;
    if (run < runs) score_run<Wave>(o, view, group, run, runs, lds);
  }
}

}  // namespace exact_topk::kernels::head
