// SPDX-License-Identifier: Apache-2.0
#pragma once

// RMSNorm of one row, by one block: out = bf16(v * (1 / sqrt(mean(v^2) + eps))
// * gamma). Stages 1 and 2 both end in it.
//
// The sum of squares has one order, whatever the block's size: partial sums of
// the elements i mod kNormPartials, then the waves' totals. Blocks of the two
// arms differ in size, and a sum in another order can move x by an ulp of bf16.

#include <math.h>

#include <cstdint>

#include "kernels/stages/block.h"
#include "kernels/stages/formats.h"

namespace exact_topk::kernels {

inline constexpr int kNormPartials =
    256;  // a block has at least as many threads

// LDS of a norm over `count` values: this, then the values.
struct NormLds {
  float totals[kLargestWaves];  // sum of squares of each wave's values

  __device__ float* values() { return reinterpret_cast<float*>(this + 1); }
  static constexpr uint32_t bytes(int count) {
    return static_cast<uint32_t>(sizeof(float)) *
           static_cast<uint32_t>(kLargestWaves + count);
  }
};

// The norm of lds.values(), which are all there after a barrier.
template <int Wave>
__device__ inline void norm_kept(int count, const float* gamma, float eps,
                                 NormLds& lds, uint16_t* out) {
  const float* kept = lds.values();
  float squares = 0.0f;
  if (threadIdx.x < kNormPartials)
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kNormPartials)
      squares += kept[i] * kept[i];
  const float mean =
      block_sum<Wave>(squares, lds.totals) / static_cast<float>(count);
  const float rms = 1.0f / sqrtf(mean + eps);
  for (int i = static_cast<int>(threadIdx.x); i < count;
       i += static_cast<int>(blockDim.x))
    out[i] = f32_to_bf16(kept[i] * rms * gamma[i]);
}

// value(i) gives element i and is called once for each.
template <int Wave, class Value>
__device__ inline void rms_norm(const Value& value, int count,
                                const float* gamma, float eps, NormLds& lds,
                                uint16_t* out) {
  for (int i = static_cast<int>(threadIdx.x); i < count;
       i += static_cast<int>(blockDim.x))
    lds.values()[i] = value(i);
  __syncthreads();
  norm_kept<Wave>(count, gamma, eps, lds, out);
}

}  // namespace exact_topk::kernels
