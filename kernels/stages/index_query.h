// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 3: one head of an index query, by one wave: rope and Hadamard. Bitwise;
// the rounding to bf16 is the caller's.

#include "kernels/stages/head_vector.h"

namespace exact_topk::kernels {

// The head's values as scored, but for the rounding to bf16; `cosines` and
// `sines` are the row's of the rope table.
template <int Wave>
__device__ inline HeadVector<Wave> index_query_head(
    const HeadVector<Wave>& mailbox, const float* cosines, const float* sines,
    const Geometry& geometry) {
  const HeadVector<Wave> v = rope(mailbox, cosines, sines, geometry.rope);
  return geometry.hadamard ? hadamard(v) : v;
}

}  // namespace exact_topk::kernels
