// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 1: where a hidden state comes from, element by element. The sums are in
// f32 and in this order.

#include <cstdint>

#include "kernels/stages/formats.h"

namespace exact_topk::kernels {

// One row's inputs.
struct HiddenState {
  const uint16_t* embedding;  // bf16 [hidden], the token's row; nullptr unless
                              // the kind is embed
  const float* residual;      // [hidden]
  const float* partials;      // [hidden], the row's of the first partial sum
  int64_t partial_stride;     // elements from one partial sum to the next
  int partial_count;          // T for kind index, 1 for dense

  __device__ float operator()(int i) const {
    if (embedding != nullptr) return bf16_to_f32(embedding[i]);
    float h = residual[i];
    for (int t = 0; t < partial_count; ++t)
      h += partials[t * partial_stride + i];
    return h;
  }
};

}  // namespace exact_topk::kernels
