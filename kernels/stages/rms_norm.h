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

#include "kernels/hip/unroll.h"
#include "kernels/stages/block.h"
#include "kernels/stages/formats.h"

namespace exact_topk::kernels {

inline constexpr int kNormPartials =
    256;  // a block has at least as many threads

// LDS of a norm over `count` values: this, then the values.
struct alignas(16) NormLds {
  float totals[kLargestWaves];  // sum of squares of each wave's values

  __device__ float* values() { return reinterpret_cast<float*>(this + 1); }
  static constexpr uint32_t bytes(int count) {
    return static_cast<uint32_t>(sizeof(float)) *
           static_cast<uint32_t>(kLargestWaves + count);
  }
};

// The norm of lds.values(), which are all there after a barrier. out(v, bf16)
// takes elements 4 v to 4 v + 3, two of them a word.
template <int Wave, class Out>
__device__ inline void norm_kept(int count, const float* gamma, float eps,
                                 NormLds& lds, const Out& out) {
  constexpr int kFlight = 4;  // loads of a thread in flight
  const float* kept = lds.values();
  const auto* kept4 = reinterpret_cast<const float4*>(kept);
  const auto* gamma4 = reinterpret_cast<const float4*>(gamma);
  const int threads = static_cast<int>(blockDim.x);
  const int vectors = count / 4;
  float squares = 0.0f;
  if (threadIdx.x < kNormPartials)
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kNormPartials)
      squares += kept[i] * kept[i];
  const float mean =
      block_sum<Wave>(squares, lds.totals) / static_cast<float>(count);
  const float rms = 1.0f / sqrtf(mean + eps);
  const auto half = [rms](float value, float weight) {
    return uint32_t{f32_to_bf16(value * rms * weight)};
  };
  for (int first = static_cast<int>(threadIdx.x); first < vectors;
       first += kFlight * threads) {
    float4 g[kFlight];
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f)
      if (first + f * threads < vectors) g[f] = gamma4[first + f * threads];
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int v = first + f * threads;
      if (v >= vectors) break;
      const float4 k = kept4[v];
      out(v, uint2{half(k.x, g[f].x) | half(k.y, g[f].y) << 16,
                   half(k.z, g[f].z) | half(k.w, g[f].w) << 16});
    }
  }
}

// value(v) gives elements 4 v to 4 v + 3 and is called once for each.
template <int Wave, class Value, class Out>
__device__ inline void rms_norm(const Value& value, int count,
                                const float* gamma, float eps, NormLds& lds,
                                const Out& out) {
  auto* kept = reinterpret_cast<float4*>(lds.values());
  for (int v = static_cast<int>(threadIdx.x); v < count / 4;
       v += static_cast<int>(blockDim.x))
    kept[v] = value(v);
  __syncthreads();
  norm_kept<Wave>(count, gamma, eps, lds, out);
}

// Stores a norm's elements to memory, bf16 [count].
struct StoreNorm {
  uint16_t* out;  // on an 8-byte boundary

  __device__ void operator()(int v, uint2 elements) const {
    reinterpret_cast<uint2*>(out)[v] = elements;
  }
};

}  // namespace exact_topk::kernels
