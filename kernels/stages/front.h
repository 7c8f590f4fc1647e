// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stages 1 to 4 as tasks, which both arms share and place in their own ways:
//
//   input   one a row, a block:             hidden state, RMSNorm, x
//   down    one a tile of outputs, a wave:  q_a x, then wk x, then weights_proj
//   x, all rows at once norm    one a row, a block:             RMSNorm of q_a
//   x, q_lora up      one a tile of outputs, a wave:  wq_b q_lora, the mailbox,
//   all rows at once key     one a row, a wave:              the index key,
//   into its slot query   one a row and head, a wave:     the index query
//
// A weight matrix is read once for all rows. Pad rows run through the tiles
// beside the live ones, and nothing of theirs is stored. Tasks of a row are for
// live rows only.

#include <cstdint>

#include "kernels/hip/mma.h"
#include "kernels/operands.h"
#include "kernels/stages/hidden_state.h"
#include "kernels/stages/index_key.h"
#include "kernels/stages/index_query.h"
#include "kernels/stages/rms_norm.h"

namespace exact_topk::kernels {

__host__ __device__ inline int tiles_of(int outputs) {
  return (outputs + hip::kTile - 1) / hip::kTile;
}
__host__ __device__ inline int down_tasks(const Geometry& g) {
  return tiles_of(g.q_lora) + tiles_of(kHeadDim) + tiles_of(g.heads);
}
__host__ __device__ inline int up_tasks(const Geometry& g) {
  return tiles_of(g.heads * kHeadDim);
}

template <int Wave>
__device__ inline void input_task(const FrontOperands& o, int row,
                                  NormLds& lds) {
  const int hidden = o.geometry.hidden;
  const int64_t start = int64_t{row} * hidden;
  const bool embed = o.kind == Kind::kEmbed;
  const HiddenState h{
      embed ? o.weights.embedding + int64_t{o.tokens[row]} * hidden : nullptr,
      o.residual + start, o.partials + start, int64_t{o.rows.rows} * hidden,
      o.partial_count};
  rms_norm<Wave>(h, hidden, o.weights.input_gamma, o.geometry.rms_eps, lds,
                 o.x + start);
}

// One tile of a projection: 16 outputs of all rows, times `factor`, into
// out[row][outputs].
template <int Wave, class Weight>
__device__ inline void project_tile(const Weight* matrix, int outputs,
                                    int inputs, int tile, const uint16_t* x,
                                    const RowTables& rows, float factor,
                                    float* out) {
  const int first = tile * hip::kTile;
  const int count = outputs - first < hip::kTile ? outputs - first : hip::kTile;
  const auto sums = hip::front_tile<Wave>(matrix + int64_t{first} * inputs,
                                          count, x, rows.rows, inputs);
  const int lane = hip::lane<Wave>();
  if (lane >= count) return;
  for (int r = 0; r < rows.rows; ++r)
    if (rows.keys(r) > 0)
      out[int64_t{r} * outputs + first + lane] = sums.value[r] * factor;
}

template <int Wave>
__device__ inline void down_task(const FrontOperands& o, int task) {
  const Geometry& g = o.geometry;
  const int q_tiles = tiles_of(g.q_lora);
  const int key_tiles = tiles_of(kHeadDim);
  if (task < q_tiles) {
    project_tile<Wave>(o.weights.q_a, g.q_lora, g.hidden, task, o.x, o.rows,
                       1.0f, o.q_down);
  } else if (task < q_tiles + key_tiles) {
    project_tile<Wave>(o.weights.wk, kHeadDim, g.hidden, task - q_tiles, o.x,
                       o.rows, 1.0f, o.raw_key);
  } else {
    project_tile<Wave>(o.weights.weights_proj, g.heads, g.hidden,
                       task - q_tiles - key_tiles, o.x, o.rows, g.weight_factor,
                       o.w);
  }
}

template <int Wave>
__device__ inline void norm_task(const FrontOperands& o, int row,
                                 NormLds& lds) {
  const int64_t start = int64_t{row} * o.geometry.q_lora;
  const float* down = o.q_down + start;
  rms_norm<Wave>([down](int i) { return down[i]; }, o.geometry.q_lora,
                 o.weights.q_gamma, o.geometry.rms_eps, lds, o.q_lora + start);
}

template <int Wave>
__device__ inline void up_task(const FrontOperands& o, int task) {
  const Geometry& g = o.geometry;
  project_tile<Wave>(o.weights.wq_b, g.heads * kHeadDim, g.q_lora, task,
                     o.q_lora, o.rows, 1.0f, o.mailbox);
}

// A row's line of the rope table.
struct RopeLine {
  const float* cosines;  // [32]
  const float* sines;    // [32]
};

__device__ inline RopeLine rope_line(const FrontOperands& o, int row) {
  const int64_t start = int64_t{o.rows.keys(row) - 1} * kRopePairs;
  return {o.weights.rope_cos + start, o.weights.rope_sin + start};
}

template <int Wave>
__device__ inline void key_task(const FrontOperands& o, int row) {
  const RopeLine line = rope_line(o, row);
  const auto key =
      index_key<Wave>(o.raw_key + row * kHeadDim, o.weights.k_gamma,
                      o.weights.k_beta, line.cosines, line.sines, o.geometry);
  store_key<Wave>(key, o.slots[row], o.geometry.page_layout, o.cache);
}

template <int Wave>
__device__ inline void query_task(const FrontOperands& o, int row, int head) {
  const RopeLine line = rope_line(o, row);
  const int start = (row * o.geometry.heads + head) * kHeadDim;
  index_query_head<Wave>(o.mailbox + start, line.cosines, line.sines,
                         o.geometry, o.index_query + start);
}

}  // namespace exact_topk::kernels
