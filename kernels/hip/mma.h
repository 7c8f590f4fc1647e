// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix tiles: the two inner products that a launch spends its time in, each
// one operation of a whole wave.
//
//   score_tile_rows   16 cached keys against all heads of up to 4 queries, with
//                     relu and head weights
//   front_tile        16 outputs of a weight matrix times up to 8 input rows
//
// Every lane of the wave calls with the same arguments. The summation order of
// a result depends on nothing but its own operands: not on the rows beside it,
// the lane, the wave size or the schedule. Fused multiply-adds are used here on
// purpose (no stage that is bitwise goes through a tile). Pointers may be
// global memory or LDS; on the CPU the last lane to arrive computes the tile
// for all, in vectors, at one meeting.
//
// Orders: a score's dot sums dims 0, 1 .. 127 by fused multiply-add from +0,
// then fma(w_h, relu(dot_h), sum) over heads 0, 1 .. from +0.0. A front output
// keeps one partial sum for each of i mod 8 (CPU) or i mod Wave (AMD), each by
// fused multiply-add from +0 in index order, then adds the halves together
// until one is left. On NVIDIA both orders are those of nvidia_tile.h.

#include "kernels/hip/tile_operands.h"
#include "kernels/hip/wave.h"

#if defined(EXACT_TOPK_HIP_CPU)
#include "kernels/hip/cpu/tile.h"
#elif defined(EXACT_TOPK_HIP_NVIDIA)
#include "kernels/hip/nvidia_tile.h"
#endif

#include <cstddef>

namespace exact_topk::hip {

#if defined(EXACT_TOPK_HIP_CPU)

/// In lane l, for each row: sum over heads of w_h * relu(q_h . k_(l mod 16)).
template <int Wave, int Rows>
RowValues<Rows> score_tile_rows(const KeyTile& keys,
                                const ScoreQuery (&queries)[Rows], int heads,
                                cpu::Site site = cpu::Site::here()) {
  static_assert(Rows >= 1 && Rows <= kTileQueries);
  cpu::require_wave<Wave>();
  RowValues<Rows> mine;
  cpu::score_tile({keys, queries, Rows, heads, mine.value}, site);
  return mine;
}

/// In lane l, for each of `rows` rows r: sum over `inputs` i of
/// weights[l mod 16][i] * x[r][i]. Weights are [16][weight_stride] and x is
/// [rows][x_stride], each bf16 (uint16_t) or float. Only the first `outputs`
/// weight rows are read; the others give 0.
template <int Wave, class Weight, class Input>
RowValues<kTileRows> front_tile(const Weight* weights, int weight_stride,
                                int outputs, const Input* x, int x_stride,
                                int rows, int inputs,
                                cpu::Site site = cpu::Site::here()) {
  cpu::require_wave<Wave>();
  RowValues<kTileRows> mine;
  cpu::front_tile<Weight, Input>(
      {weights, outputs, weight_stride, x, rows, x_stride, inputs, mine.value},
      site);
  return mine;
}

#elif defined(EXACT_TOPK_HIP_AMD)

namespace detail {

__device__ inline float to_float(uint16_t bf16) {
  return __uint_as_float(static_cast<uint32_t>(bf16) << 16);
}
__device__ inline float to_float(float value) { return value; }

// The code's bits as an f32 exponent and mantissa, times the power of two that
// makes up for the bias: subnormals too.
__device__ inline float to_float(uint8_t code, bool fnuz) {
  const uint32_t magnitude = code & 0x7Fu;
  if (fnuz ? code == 0x80u : magnitude == 0x7Fu)
    return __uint_as_float(0x7FC00000u);
  const float scale = fnuz ? 0x1p119f : 0x1p120f;
  return __uint_as_float((code & 0x80u) << 24 | magnitude << 20) * scale;
}

__device__ inline int key_byte(KeyLayout layout, int token, int dim) {
  return layout == KeyLayout::plain
             ? token * kKeyDims + dim
             : token / 16 * 2048 + dim / 16 * 256 + token % 16 * 16 + dim % 16;
}

}  // namespace detail

template <int Wave, int Rows>
__device__ inline RowValues<Rows> score_tile_rows(
    const KeyTile& keys, const ScoreQuery (&queries)[Rows], int heads) {
  const int token = keys.first + lane<Wave>() % kTile;
  RowValues<Rows> mine;
  for (int r = 0; r < Rows; ++r) {
    float sum = 0.0f;
    for (int h = 0; h < heads; ++h) {
      float dot = 0.0f;
      for (int d = 0; d < kKeyDims; ++d)
        dot = fmaf(
            detail::to_float(queries[r].query[h * kKeyDims + d]),
            detail::to_float(keys.page[detail::key_byte(keys.layout, token, d)],
                             keys.fnuz),
            dot);
      sum = fmaf(queries[r].weights[h], dot > 0.0f ? dot : 0.0f, sum);
    }
    mine.value[r] = sum;
  }
  return mine;
}

template <int Wave, class Weight, class Input>
__device__ inline RowValues<kTileRows> front_tile(const Weight* weights,
                                                  int weight_stride,
                                                  int outputs, const Input* x,
                                                  int x_stride, int rows,
                                                  int inputs) {
  RowValues<kTileRows> mine = {};
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < outputs; ++o) {
      float partial = 0.0f;
      for (int i = lane<Wave>(); i < inputs; i += Wave)
        partial =
            fmaf(detail::to_float(
                     weights[static_cast<size_t>(o) * weight_stride + i]),
                 detail::to_float(x[static_cast<size_t>(r) * x_stride + i]),
                 partial);
      const float sum = wave_sum<Wave>(partial);
      if (lane<Wave>() % kTile == o) mine.value[r] = sum;
    }
  }
  return mine;
}

#endif

#if !defined(EXACT_TOPK_HIP_NVIDIA)

#if defined(EXACT_TOPK_HIP_CPU)
#define EXACT_TOPK_SITE_PARAMETER , cpu::Site site = cpu::Site::here()
#define EXACT_TOPK_SITE_ARGUMENT , site
#else
#define EXACT_TOPK_SITE_PARAMETER
#define EXACT_TOPK_SITE_ARGUMENT
#endif

/// Queries and weights of the rows that a block scores, in LDS: bf16
/// [rows][H][128], then f32 [rows][H].
class QueryBlock {
 public:
  static constexpr int kAlignment = 16;  ///< of the LDS

  static __host__ __device__ constexpr size_t bytes(int rows, int heads) {
    return static_cast<size_t>(rows) * static_cast<size_t>(heads) *
           (2 * kKeyDims + sizeof(float));
  }

  __device__ QueryBlock(std::byte* lds, int rows, int heads)
      : query_(reinterpret_cast<uint16_t*>(lds)),
        weights_(reinterpret_cast<float*>(query_ + rows * heads * kKeyDims)),
        heads_(heads) {}
  /// Word `word` of row `row`'s bf16 [H][128]: two neighbouring dims.
  __device__ void put(int row, int word, uint32_t dims) {
    reinterpret_cast<uint32_t*>(query_)[row * heads_ * (kKeyDims / 2) + word] =
        dims;
  }
  __device__ void put_weight(int row, int head, float weight) {
    weights_[row * heads_ + head] = weight;
  }
  /// Makes this thread's stores visible to the matrix unit, after a barrier.
  __device__ void complete() const {}

  __device__ ScoreQuery query(int row) const {
    return {query_ + row * heads_ * kKeyDims, weights_ + row * heads_};
  }
  __device__ int heads() const { return heads_; }

 private:
  uint16_t* query_;  // bf16 [rows][H][128]
  float* weights_;   // [rows][H]
  int heads_;        // H
};

/// score_tile_rows for queries in LDS: calls sink(row, key, score) once for
/// every row and each of the 16 keys, in one lane or another. Up to four waves
/// of a block call together (wave % 4 of 0..3), each with its own keys: on
/// NVIDIA they are one warpgroup, which multiplies together.
template <int Wave, int Rows, class Sink>
__device__ inline void score_tile_block(
    const KeyTile& keys, const QueryBlock& block,
    const Sink& sink EXACT_TOPK_SITE_PARAMETER) {
  ScoreQuery queries[Rows];
  for (int r = 0; r < Rows; ++r) queries[r] = block.query(r);
  const RowValues<Rows> scores = score_tile_rows<Wave, Rows>(
      keys, queries, block.heads() EXACT_TOPK_SITE_ARGUMENT);
  const int lane = hip::lane<Wave>();
  if (lane >= kTile) return;
  for (int r = 0; r < Rows; ++r) sink(r, lane, scores.value[r]);
}

/// front_tile as the kernels use it: calls sink(row, output, sum) once for each
/// of 8 rows and of the outputs there are, in one lane or another; what it says
/// of further outputs, up to 16, is nobody's. `inputs` is a multiple of
/// 32, every row starts on a 16-byte boundary, and x is bf16.
template <int Wave, class Weight, class Sink>
__device__ inline void front_tile_to(
    const Weight* weights, int weight_stride, int outputs, const uint16_t* x,
    int x_stride, int rows, int inputs,
    const Sink& sink EXACT_TOPK_SITE_PARAMETER) {
  const auto sums =
      front_tile<Wave>(weights, weight_stride, outputs, x, x_stride, rows,
                       inputs EXACT_TOPK_SITE_ARGUMENT);
  const int lane = hip::lane<Wave>();
  if (lane >= kTile) return;
  for (int r = 0; r < kTileRows; ++r) sink(r, lane, sums.value[r]);
}

#undef EXACT_TOPK_SITE_PARAMETER
#undef EXACT_TOPK_SITE_ARGUMENT

#endif

}  // namespace exact_topk::hip
