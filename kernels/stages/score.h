// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 5: scores of one row against 16 neighbouring keys, by one wave. The sum
// over dims and heads and its order are those of hip::score_tile, in both arms;
// the key's scale comes last. Keys at and past n are never stored.

#include <cstdint>

#include "kernels/hip/mma.h"
#include "kernels/operands.h"

namespace exact_topk::kernels {

// 16 keys of a page from token `first` on, as the score operation takes them.
__device__ inline hip::KeyTile key_tile(const Geometry& g, const uint8_t* page,
                                        int first) {
  return {page, first,
          g.page_layout == PageLayout::kPlain ? hip::KeyLayout::plain
                                              : hip::KeyLayout::preshuffled16,
          g.fp8 == Fp8::kE4m3fnuz};
}

// Positions tile * 16 .. tile * 16 + 15 of a row of n keys.
template <int Wave>
__device__ inline void score_tile_of_row(const ScoreOperands& o, int row, int n,
                                         int tile) {
  const Geometry& g = o.geometry;
  const int first = tile * hip::kTile;
  const int32_t slot = slot_of(o.rows.table(row), first);
  const uint8_t* page = o.cache + int64_t{slot / kPageKeys} * kPageBytes;
  const hip::ScoreQuery query{o.query + int64_t{row} * g.heads * kHeadDim,
                              o.weights + int64_t{row} * g.heads};
  const float sum = hip::score_tile<Wave>(key_tile(g, page, slot % kPageKeys),
                                          query, g.heads);
  const int lane = hip::lane<Wave>();
  const int position = first + lane;
  if (lane >= hip::kTile || position >= n) return;
  const float scale =
      *reinterpret_cast<const float*>(o.cache + scale_byte(slot + lane));
  o.scores[row * o.score_stride + position] = scale * sum;
}

}  // namespace exact_topk::kernels
