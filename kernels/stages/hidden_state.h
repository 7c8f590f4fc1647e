// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 1: where a hidden state comes from, four elements at a time. The sums
// are in f32 and in this order.

#include <cstdint>

#include "kernels/hip/unroll.h"
#include "kernels/stages/formats.h"

namespace exact_topk::kernels {

__device__ inline float4 added(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// One row's inputs.
struct HiddenState {
  const uint16_t* embedding;  // bf16 [hidden], the token's row; nullptr unless
                              // the kind is embed
  const float* residual;      // [hidden]
  const float* partials;      // [hidden], the row's of the first partial sum
  int64_t partial_stride;     // elements from one partial sum to the next
  int partial_count;          // T for kind index, 1 for dense

  // Elements 4 v to 4 v + 3.
  __device__ float4 operator()(int v) const {
    if (embedding != nullptr) {
      const uint16_t* e = embedding + int64_t{4} * v;
      return {bf16_to_f32(e[0]), bf16_to_f32(e[1]), bf16_to_f32(e[2]),
              bf16_to_f32(e[3])};
    }
    constexpr int kFlight = 8;  // partial sums in flight
    float4 h = reinterpret_cast<const float4*>(residual)[v];
    for (int first = 0; first < partial_count; first += kFlight) {
      float4 part[kFlight];
      EXACT_TOPK_UNROLL
      for (int f = 0; f < kFlight; ++f)
        if (first + f < partial_count)
          part[f] = reinterpret_cast<const float4*>(
              partials + (first + f) * partial_stride)[v];
      EXACT_TOPK_UNROLL
      for (int f = 0; f < kFlight; ++f)
        if (first + f < partial_count) h = added(h, part[f]);
    }
    return h;
  }
};

}  // namespace exact_topk::kernels
