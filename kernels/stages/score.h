// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 5: scores of rows against 16 neighbouring keys at a time, by one wave.
// The sum over dims and heads and its order are those of hip::score_tile_block,
// in both arms; the key's scale comes last. Keys at and past n are never
// stored.

#include <cstdint>

#include "kernels/hip/mma.h"
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

// Puts a row's query and weights from memory into the block's LDS, as row `at`.
__device__ inline void put_query(const ScoreOperands& o, int row, int at,
                                 hip::QueryBlock& block) {
  const int heads = o.geometry.heads;
  const int words = heads * kHeadDim / 2;
  const auto* query =
      reinterpret_cast<const uint32_t*>(o.query) + int64_t{row} * words;
  const int threads = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < words; i += threads)
    block.put(at, i, query[i]);
  for (int i = static_cast<int>(threadIdx.x); i < heads; i += threads)
    block.put_weight(at, i, o.weights[int64_t{row} * heads + i]);
}

// Tile `tile` of a row of n keys: positions tile * 16 .. tile * 16 + 15.
template <int Wave>
__device__ inline void score_tile_of_row(const ScoreOperands& o, int row, int n,
                                         int tile,
                                         const hip::QueryBlock& block) {
  const int first = tile * hip::kTile;
  const int32_t slot = slot_of(o.rows.table(row), first);
  const uint8_t* page = o.cache + int64_t{slot / kPageKeys} * kPageBytes;
  const float sum = hip::score_tile_block<Wave, 1>(
                        key_tile(o.geometry, page, slot % kPageKeys), block)
                        .value[0];
  const int lane = hip::lane<Wave>();
  const int position = first + lane;
  if (lane >= hip::kTile || position >= n) return;
  const float scale =
      *reinterpret_cast<const float*>(o.cache + scale_byte(slot + lane));
  o.scores[row * o.score_stride + position] = scale * sum;
}

}  // namespace exact_topk::kernels
