// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 5 in the head arm: the rows of a group score their request's keys in
// one pass. A block takes one run of the request's pages, copies them to LDS a
// batch at a time, the next batch in registers while it scores this one, and
// patches into each batch the keys that this launch writes, for every row of
// the request in the launch: their cache stores need not be visible yet.

#include <cstdint>

#include "kernels/head/hand_off.h"
#include "kernels/head/operands.h"
#include "kernels/stages/score.h"

namespace exact_topk::kernels::head {

inline constexpr int kPageVectors = kPageBytes / 16;  // 16-byte loads of a page
inline constexpr int kPrefetch =
    17;  // 16-byte registers of a thread: a batch of 8 pages by 256 threads

// LDS of a run: the group's queries and weights, then a batch of pages.
struct ScoreLds {
  uint16_t* query;  // bf16 [rows of the group][H][128]
  float* weights;   // [rows of the group][H]
  uint8_t* pages;   // [batch_pages][8448]

  __device__ ScoreLds(std::byte* lds, int heads)
      : query(reinterpret_cast<uint16_t*>(lds)),
        weights(reinterpret_cast<float*>(query + layout::kGroupRows * heads *
                                                     kHeadDim)),
        pages(
            reinterpret_cast<uint8_t*>(weights + layout::kGroupRows * heads)) {}
  __host__ __device__ static constexpr size_t bytes(int heads,
                                                    int batch_pages) {
    return static_cast<size_t>(layout::kGroupRows) *
               static_cast<size_t>(heads) * (2 * kHeadDim + 4) +
           static_cast<size_t>(batch_pages) * kPageBytes;
  }
};

// A batch on its way from the cache to LDS, spread over the block's registers.
struct BatchRegisters {
  uint4 word[kPrefetch];

  __device__ void load(const uint8_t* cache, const int32_t* table,
                       int64_t first_page, int pages) {
    const int count = pages * kPageVectors;
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kPrefetch; ++f) {
      const int i =
          static_cast<int>(threadIdx.x) + f * static_cast<int>(blockDim.x);
      if (i >= count) break;
      const int32_t page = table[first_page + i / kPageVectors];
      word[f] = hip::load_racing(
          reinterpret_cast<const uint4*>(cache + int64_t{page} * kPageBytes) +
          i % kPageVectors);
    }
  }
  __device__ void store(uint8_t* pages_lds, int pages) const {
    const int count = pages * kPageVectors;
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kPrefetch; ++f) {
      const int i =
          static_cast<int>(threadIdx.x) + f * static_cast<int>(blockDim.x);
      if (i >= count) break;
      reinterpret_cast<uint4*>(pages_lds)[i] = word[f];
    }
  }
};

// Takes the queries and weights of rows first .. first + rows - 1 into LDS:
// from pairs where this launch makes them, else from memory.
__device__ inline void take_queries(const Operands& o,
                                    const layout::Group& group,
                                    const ScoreLds& lds) {
  const int heads = o.score.geometry.heads;
  const int words = heads * kHeadDim / 2;
  for (int i = 0; i < group.rows; ++i) {
    const int row = group.first + i;
    auto* query = reinterpret_cast<uint32_t*>(lds.query) + i * words;
    float* weights = lds.weights + i * heads;
    if (o.parts & kKeyQueryPart) {
      collect(o.pairs.query + int64_t{row} * words, words, o.tag,
              [query](int at, uint32_t payload) { query[at] = payload; });
      collect(o.pairs.w + int64_t{row} * heads, heads, o.tag,
              [weights](int at, uint32_t payload) {
                weights[at] = bits_float(payload);
              });
    } else {
      const auto* words_in = reinterpret_cast<const uint32_t*>(o.score.query) +
                             int64_t{row} * words;
      for (int at = static_cast<int>(threadIdx.x); at < words;
           at += static_cast<int>(blockDim.x))
        query[at] = words_in[at];
      for (int at = static_cast<int>(threadIdx.x); at < heads;
           at += static_cast<int>(blockDim.x))
        weights[at] = o.score.weights[int64_t{row} * heads + at];
    }
  }
}

// Overwrites, in the batch of pages [first_page, first_page + pages) of
// `reader`'s table, the keys that rows of this launch write there. Returns how
// many.
__device__ inline int patch(const Operands& o, const layout::RowsView& view,
                            int reader, int64_t first_page, int pages,
                            uint8_t* pages_lds) {
  int patched = 0;
  for (int writer = 0; writer < view.rows; ++writer) {
    if (!layout::patches(view, reader, writer)) continue;
    const int64_t page = view.position[writer] / kPageKeys - first_page;
    if (page < 0 || page >= pages) continue;
    const auto slot = static_cast<int32_t>(page * kPageKeys +
                                           view.position[writer] % kPageKeys);
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

// Scores a batch in LDS for the group's rows: a wave takes tiles of 16 keys.
template <int Wave, int Rows>
__device__ inline void score_batch(const Operands& o,
                                   const layout::Group& group,
                                   int64_t first_page, int pages,
                                   const ScoreLds& lds) {
  const Geometry& g = o.score.geometry;
  hip::ScoreQuery queries[Rows];
  for (int i = 0; i < Rows; ++i)
    queries[i] = {lds.query + i * g.heads * kHeadDim,
                  lds.weights + i * g.heads};
  constexpr int kTilesAPage = kPageKeys / hip::kTile;
  const int lane = hip::lane<Wave>();
  for (int tile = hip::wave<Wave>(); tile < pages * kTilesAPage;
       tile += waves_of_block<Wave>()) {
    const int page = tile / kTilesAPage;
    const int first = tile % kTilesAPage * hip::kTile;
    const auto sums = hip::score_tile_rows<Wave, Rows>(
        key_tile(g, lds.pages + page * kPageBytes, first), queries, g.heads);
    if (lane >= hip::kTile) continue;
    const auto slot = static_cast<int32_t>(page * kPageKeys + first + lane);
    const float scale =
        *reinterpret_cast<const float*>(lds.pages + scale_byte(slot));
    const int64_t position = (first_page + page) * kPageKeys + first + lane;
    for (int i = 0; i < Rows; ++i) {
      const int row = group.first + i;
      if (position < o.score.rows.keys(row))
        o.score.scores[row * o.score.score_stride + position] =
            scale * sums.value[i];
    }
  }
}

template <int Wave>
__device__ inline void score_batch(const Operands& o,
                                   const layout::Group& group,
                                   int64_t first_page, int pages,
                                   const ScoreLds& lds) {
  switch (group.rows) {
    case 1:
      return score_batch<Wave, 1>(o, group, first_page, pages, lds);
    case 2:
      return score_batch<Wave, 2>(o, group, first_page, pages, lds);
    case 3:
      return score_batch<Wave, 3>(o, group, first_page, pages, lds);
    default:
      return score_batch<Wave, 4>(o, group, first_page, pages, lds);
  }
}

// One run of one group.
template <int Wave>
__device__ inline void score_run(const Operands& o,
                                 const layout::RowsView& view,
                                 const layout::Group& group, int run, int runs,
                                 std::byte* raw_lds) {
  const int reader = group.first + group.rows - 1;
  const int64_t keys = view.keys(reader);
  const int32_t* table = o.score.rows.table(reader);
  const ScoreLds lds(raw_lds, o.score.geometry.heads);
  const layout::Range pages = layout::run_pages(keys, runs, run);
  const auto size_at = [&](int64_t page) {
    return static_cast<int>(layout::smaller(o.batch_pages, pages.end - page));
  };
  BatchRegisters next;
  next.load(o.score.cache, table, pages.begin, size_at(pages.begin));
  take_queries(o, group, lds);
  int patched = 0;
  for (int64_t page = pages.begin; page < pages.end; page += o.batch_pages) {
    const int size = size_at(page);
    next.store(lds.pages, size);
    __syncthreads();
    if (o.parts & kKeyQueryPart) {
      patched += patch(o, view, reader, page, size, lds.pages);
      __syncthreads();
    }
    if (page + o.batch_pages < pages.end)
      next.load(o.score.cache, table, page + o.batch_pages,
                size_at(page + o.batch_pages));
    score_batch<Wave>(o, group, page, size, lds);
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const int at = group.first * layout::kMaxRuns + run;
    o.run_patched[at] = static_cast<uint32_t>(patched);
    hip::pair_store_release(o.pairs.run_done + at, static_cast<uint32_t>(run),
                            o.tag);
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
