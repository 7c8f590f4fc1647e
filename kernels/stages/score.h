// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 5: scores of rows against 16 neighbouring keys at a time, by one wave.
// The sum over dims and heads and its order are those of hip::score_tile_block,
// in both arms; the key's scale comes last. Keys at and past n are never
// stored.

#include <cstdint>

#include "kernels/hip/mma.h"
#include "kernels/hip/unroll.h"
#include "kernels/operands.h"

namespace exact_topk::kernels {

inline constexpr int kPageTiles =
    kPageKeys / hip::kTile;  // 16 keys each, one a wave of four that score a
                             // page together

// 16 keys of a page from token `first` on, as the score operation takes them.
__device__ inline hip::KeyTile key_tile(const Geometry& g, const uint8_t* page,
                                        int first) {
  return {page, first,
          g.page_layout == PageLayout::kPlain ? hip::KeyLayout::plain
                                              : hip::KeyLayout::preshuffled16,
          g.fp8 == Fp8::kE4m3fnuz};
}

// Puts the queries and weights of rows first .. first + count - 1 from memory
// into the block's LDS.
__device__ inline void put_queries(const ScoreOperands& o, int first, int count,
                                   hip::QueryBlock& block) {
  const int heads = o.geometry.heads;
  const int words = heads * kHeadDim / 2;  // of a row
  const int vectors = words / 4;
  const auto* query =
      reinterpret_cast<const uint4*>(o.query) + int64_t{first} * vectors;
  const int threads = static_cast<int>(blockDim.x);
  constexpr int kFlight = 4;  // loads of a thread in flight
  for (int start = static_cast<int>(threadIdx.x); start < count * vectors;
       start += kFlight * threads) {
    uint4 dims[kFlight];
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int i = start + f * threads;
      if (i < count * vectors) dims[f] = query[i];
    }
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int i = start + f * threads;
      if (i >= count * vectors) break;
      const int row = i / vectors;
      const int word = i % vectors * 4;
      block.put(row, word, dims[f].x);
      block.put(row, word + 1, dims[f].y);
      block.put(row, word + 2, dims[f].z);
      block.put(row, word + 3, dims[f].w);
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < count * heads; i += threads)
    block.put_weight(i / heads, i % heads,
                     o.weights[int64_t{first} * heads + i]);
}

// Tile `tile` of a row of n keys: positions tile * 16 .. tile * 16 + 15.
template <int Wave>
__device__ inline void score_tile_of_row(const ScoreOperands& o, int row, int n,
                                         int tile,
                                         const hip::QueryBlock& block) {
  const int first = tile * hip::kTile;
  const int32_t slot = slot_of(o.rows.table(row), first);
  const uint8_t* page = o.cache + int64_t{slot / kPageKeys} * kPageBytes;
  hip::score_tile_block<Wave, 1>(
      key_tile(o.geometry, page, slot % kPageKeys), block,
      [&](int, int key, float sum) {
        if (first + key >= n) return;
        const float scale =
            *reinterpret_cast<const float*>(o.cache + scale_byte(slot + key));
        o.scores[row * o.score_stride + first + key] = scale * sum;
      });
}

}  // namespace exact_topk::kernels
