// SPDX-License-Identifier: Apache-2.0
#pragma once

// The base arm's stages 1 to 5 as kernels, one a stage: the cache store is
// complete before scoring starts.

#include "kernels/stages/front.h"
#include "kernels/stages/score.h"

namespace exact_topk::kernels::base {

inline constexpr int kNormThreads =
    512;  // of a block that takes a row through a norm
static_assert(kNormThreads >= kNormPartials);
inline constexpr int kProjectThreads =
    384;  // of a block that takes a projection's tile: a wave of 32 a part
inline constexpr int kTaskWaves =
    4;  // of a block whose waves take tasks one by one

// This wave among all waves of the grid's x, and how many there are.
struct WaveOfGrid {
  int index;  // of this wave
  int count;  // of waves
};

template <int Wave>
__device__ inline WaveOfGrid wave_of_grid() {
  return {static_cast<int>(blockIdx.x) * kTaskWaves + hip::wave<Wave>(),
          static_cast<int>(gridDim.x) * kTaskWaves};
}

// Grid: a block a row.
template <int Wave>
__global__ void input_rows(FrontOperands o) {
  HIP_DYNAMIC_SHARED(NormLds, lds)
  const int row = static_cast<int>(blockIdx.x);
  if (o.rows.keys(row) > 0)
    input_task<Wave>(o, row, StoreNorm{o.x + int64_t{row} * o.geometry.hidden},
                     *lds);
}

// Grid: any.
template <int Wave>
__global__ void __launch_bounds__(kProjectThreads)
    project_down(FrontOperands o) {
  HIP_DYNAMIC_SHARED(ProjectLds, lds)
  int turn = 0;
  for (int task = static_cast<int>(blockIdx.x); task < down_tasks(o.geometry);
       task += static_cast<int>(gridDim.x))
    down_task<Wave>(o, task, InputRows{o.x, o.geometry.hidden},
                    StoreRows{o.q_down, o.geometry.q_lora},
                    StoreRows{o.raw_key, kHeadDim},
                    StoreRows{o.w, o.geometry.heads}, turn++, *lds);
}

// Grid: a block a row.
template <int Wave>
__global__ void norm_rows(FrontOperands o) {
  HIP_DYNAMIC_SHARED(NormLds, lds)
  const int row = static_cast<int>(blockIdx.x);
  const int count = o.geometry.q_lora;
  const float* down = o.q_down + int64_t{row} * count;
  const auto fill = [&](float* values) {
    for (int i = static_cast<int>(threadIdx.x); i < count;
         i += static_cast<int>(blockDim.x))
      values[i] = down[i];
  };
  if (o.rows.keys(row) > 0)
    norm_task<Wave>(o, fill, StoreNorm{o.q_lora + int64_t{row} * count}, *lds);
}

// Grid: any.
template <int Wave>
__global__ void __launch_bounds__(kProjectThreads) project_up(FrontOperands o) {
  HIP_DYNAMIC_SHARED(ProjectLds, lds)
  int turn = 0;
  for (int task = static_cast<int>(blockIdx.x); task < up_tasks(o.geometry);
       task += static_cast<int>(gridDim.x))
    up_task<Wave>(o, task, InputRows{o.q_lora, o.geometry.q_lora},
                  StoreRows{o.mailbox, o.geometry.heads * kHeadDim}, turn++,
                  *lds);
}

// Grid: (any, R). Task 0 of a row is its key, the others its heads.
template <int Wave>
__global__ void keys_and_queries(FrontOperands o) {
  const int row = static_cast<int>(blockIdx.y);
  if (o.rows.keys(row) == 0) return;
  const WaveOfGrid wave = wave_of_grid<Wave>();
  for (int task = wave.index; task < 1 + o.geometry.heads; task += wave.count) {
    if (task == 0) {
      const auto raw = HeadVector<Wave>::load(o.raw_key + row * kHeadDim);
      store_key(key_task(o, row, raw), o.slots[row], o.geometry.page_layout,
                o.cache);
    } else {
      const int head = task - 1;
      query_task(
          o, row, head,
          HeadVector<Wave>::load(
              o.mailbox + (int64_t{row} * o.geometry.heads + head) * kHeadDim));
    }
  }
}

// Grid: (any, R). The four waves of a block take the four tiles of a page
// together, the last page whole.
template <int Wave>
__global__ void score_rows(ScoreOperands o) {
  HIP_DYNAMIC_SHARED(std::byte, lds)
  static_assert(kTaskWaves == kPageTiles);
  const int row = static_cast<int>(blockIdx.y);
  const int n = o.rows.keys(row);
  if (n == 0) return;
  hip::QueryBlock block(lds, 1, o.geometry.heads);
  put_queries(o, row, 1, block);
  block.complete();
  __syncthreads();
  const int tiles = (n + kPageKeys - 1) / kPageKeys * kPageTiles;
  const WaveOfGrid wave = wave_of_grid<Wave>();
  for (int tile = wave.index; tile < tiles; tile += wave.count)
    score_tile_of_row<Wave>(o, row, n, tile, block);
}

}  // namespace exact_topk::kernels::base
