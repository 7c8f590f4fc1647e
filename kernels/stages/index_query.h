// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 3: one head of an index query, by one wave: rope, Hadamard, bf16.
// Bitwise.

#include <cstdint>

#include "kernels/stages/formats.h"
#include "kernels/stages/head_vector.h"

namespace exact_topk::kernels {

// `mailbox` and `query` are the head's 128 values; `cosines` and `sines` the
// row's of the rope table.
template <int Wave>
__device__ inline void index_query_head(const float* mailbox,
                                        const float* cosines,
                                        const float* sines,
                                        const Geometry& geometry,
                                        uint16_t* query) {
  using Vector = HeadVector<Wave>;
  Vector v = rope(Vector::load(mailbox), cosines, sines, geometry.rope);
  if (geometry.hadamard) v = hadamard(v);
  for (int e = 0; e < Vector::kEach; ++e)
    query[Vector::first_dim() + e] = f32_to_bf16(v.value[e]);
}

}  // namespace exact_topk::kernels
