// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stages 1 to 4 as tasks, which both arms share and place in their own ways:
//
//   input   one a row, a block:             hidden state, RMSNorm, x
//   down    one a tile of outputs, a block: q_a x, then wk x, then
//                                           weights_proj x, all rows at once
//   norm    one a row, a block:             RMSNorm of q_a x, q_lora
//   up      one a tile of outputs, a block: wq_b q_lora, the mailbox, all rows
//                                           at once
//   key     one a row, a wave:              the index key, into its slot
//   query   one a row and head, a wave:     the index query
//
// A weight matrix is read once for all rows. Pad rows run through the tiles
// beside the live ones, and nothing of theirs is stored. Tasks of a row are for
// live rows only. Where a task takes its operands from, and where a
// projection's outputs go, is the arm's affair: memory in the base arm, what
// other blocks hand over in the head arm.

#include <cstdint>

#include "kernels/hip/mma.h"
#include "kernels/layout.h"
#include "kernels/operands.h"
#include "kernels/stages/hidden_state.h"
#include "kernels/stages/index_key.h"
#include "kernels/stages/index_query.h"
#include "kernels/stages/rms_norm.h"

namespace exact_topk::kernels {

// Outputs of a tile of f32 weights: no matrix unit takes them whole, so they
// are spread over more blocks.
inline constexpr int kHeadWeightTile = 4;
static_assert(layout::kTileOutputs == hip::kTile);

__host__ __device__ inline int down_tasks(const Geometry& g) {
  return layout::tiles(g.q_lora) + layout::tiles(kHeadDim) +
         layout::tiles(g.heads, kHeadWeightTile);
}
__host__ __device__ inline int up_tasks(const Geometry& g) {
  return layout::tiles(g.heads * kHeadDim);
}

// out takes the row's x, as norm_kept gives it.
template <int Wave, class Out>
__device__ inline void input_task(const FrontOperands& o, int row,
                                  const Out& out, NormLds& lds) {
  const int hidden = o.geometry.hidden;
  const int64_t start = int64_t{row} * hidden;
  const bool embed = o.kind == Kind::kEmbed;
  const HiddenState h{
      embed ? o.weights.embedding + int64_t{o.tokens[row]} * hidden : nullptr,
      o.residual + start, o.partials + start, int64_t{o.rows.rows} * hidden,
      o.partial_count};
  rms_norm<Wave>(h, hidden, o.weights.input_gamma, o.geometry.rms_eps, lds,
                 out);
}

// Parts of a dot product, one a wave at a time, added in order: on a GPU a wave
// alone would wait for memory most of the time, and on the CPU every part costs
// a meeting of a wave's fibers.
#if defined(EXACT_TOPK_HIP_CPU)
inline constexpr int kProjectParts = 2;
#else
inline constexpr int kProjectParts = 12;
#endif
inline constexpr int kPartUnit = 32;  // inputs of a part are a multiple of it

// What a projection multiplies.
struct InputRows {
  const uint16_t* values;  // bf16 [R][stride]
  int stride;              // elements from one row to the next
};

// LDS of a projection: each part's sums. Two sets alternate from task to task,
// so that one barrier a task is enough.
struct ProjectLds {
  float sums[2][kProjectParts][hip::kTileRows][hip::kTile];
};

// One tile of a projection: `Tile` outputs of all rows, by a block, its
// `turn`-th. store(row, output, value) takes those of live rows.
template <int Wave, int Tile = hip::kTile, class Weight, class Store>
__device__ inline void project_tile(const Weight* matrix, int outputs,
                                    int inputs, int tile, const InputRows& x,
                                    const RowTables& rows, const Store& store,
                                    int turn, ProjectLds& lds) {
  static_assert(Tile <= hip::kTile);
  const int first = tile * Tile;
  const int count = outputs - first < Tile ? outputs - first : Tile;
  const Weight* weights = matrix + int64_t{first} * inputs;
  const int units = inputs / kPartUnit;
  const int lane = hip::lane<Wave>();
  auto& sums = lds.sums[turn % 2];
  for (int part = hip::wave<Wave>(); part < kProjectParts;
       part += waves_of_block<Wave>()) {
    const int begin = units * part / kProjectParts * kPartUnit;
    const int end = units * (part + 1) / kProjectParts * kPartUnit;
    const auto keep = [&](int row, int output, float sum) {
      sums[part][row][output] = sum;
    };
    if (begin < end) {
      hip::front_tile_to<Wave>(weights + begin, inputs, count, x.values + begin,
                               x.stride, rows.rows, end - begin, keep);
    } else {
      for (int i = lane; i < hip::kTileRows * hip::kTile; i += Wave)
        keep(i / hip::kTile, i % hip::kTile, 0.0f);
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows.rows * Tile;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / Tile;
    const int output = i % Tile;
    if (output >= count || rows.keys(row) == 0) continue;
    float sum = 0.0f;
    for (int part = 0; part < kProjectParts; ++part)
      sum += sums[part][row][output];
    store(row, first + output, sum);
  }
}

// Stores a projection's outputs to memory, [R][outputs].
struct StoreRows {
  float* out;   // [R][outputs]
  int outputs;  // of a row

  __device__ void operator()(int row, int output, float value) const {
    out[int64_t{row} * outputs + output] = value;
  }
};

// `x` has `hidden` values a row; the stores take q_a x, the raw key and the
// head weights.
template <int Wave, class StoreDown, class StoreKey, class StoreWeights>
__device__ inline void down_task(const FrontOperands& o, int task,
                                 const InputRows& x,
                                 const StoreDown& store_down,
                                 const StoreKey& store_key,
                                 const StoreWeights& store_weights, int turn,
                                 ProjectLds& lds) {
  const Geometry& g = o.geometry;
  const int q_tiles = layout::tiles(g.q_lora);
  const int key_tiles = layout::tiles(kHeadDim);
  if (task < q_tiles) {
    project_tile<Wave>(o.weights.q_a, g.q_lora, g.hidden, task, x, o.rows,
                       store_down, turn, lds);
  } else if (task < q_tiles + key_tiles) {
    project_tile<Wave>(o.weights.wk, kHeadDim, g.hidden, task - q_tiles, x,
                       o.rows, store_key, turn, lds);
  } else {
    project_tile<Wave, kHeadWeightTile>(
        o.weights.weights_proj, g.heads, g.hidden, task - q_tiles - key_tiles,
        x, o.rows,
        [&](int row, int output, float value) {
          store_weights(row, output, value * g.weight_factor);
        },
        turn, lds);
  }
}

// fill(values) sets the row's q_a x; out takes its q_lora.
template <int Wave, class Fill, class Out>
__device__ inline void norm_task(const FrontOperands& o, const Fill& fill,
                                 const Out& out, NormLds& lds) {
  fill(lds.values());
  __syncthreads();
  norm_kept<Wave>(o.geometry.q_lora, o.weights.q_gamma, o.geometry.rms_eps, lds,
                  out);
}

// `q_lora` has `q_lora` values a row; the store takes the mailbox, [R][H *
// 128].
template <int Wave, class Store>
__device__ inline void up_task(const FrontOperands& o, int task,
                               const InputRows& q_lora, const Store& store,
                               int turn, ProjectLds& lds) {
  const Geometry& g = o.geometry;
  project_tile<Wave>(o.weights.wq_b, g.heads * kHeadDim, g.q_lora, task, q_lora,
                     o.rows, store, turn, lds);
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

// The index key of a row's raw key.
template <int Wave>
__device__ inline QuantisedKey<Wave> key_task(const FrontOperands& o, int row,
                                              const HeadVector<Wave>& raw) {
  const RopeLine line = rope_line(o, row);
  return index_key(raw, o.weights.k_gamma, o.weights.k_beta, line.cosines,
                   line.sines, o.geometry);
}

// One head of a row's index query from its part of the mailbox; stored, and
// returned before it is rounded to bf16.
template <int Wave>
__device__ inline HeadVector<Wave> query_task(const FrontOperands& o, int row,
                                              int head,
                                              const HeadVector<Wave>& mailbox) {
  const RopeLine line = rope_line(o, row);
  const auto query =
      index_query_head(mailbox, line.cosines, line.sines, o.geometry);
  uint16_t* out = o.index_query +
                  (int64_t{row} * o.geometry.heads + head) * kHeadDim +
                  HeadVector<Wave>::first_dim();
  for (int e = 0; e < HeadVector<Wave>::kEach; ++e)
    out[e] = f32_to_bf16(query.value[e]);
  return query;
}

}  // namespace exact_topk::kernels
