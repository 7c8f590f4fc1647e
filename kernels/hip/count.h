// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counting in LDS.

#include "kernels/hip/unroll.h"
#include "kernels/hip/wave.h"

namespace exact_topk::hip {

/// Bins of up to four keys of a lane.
struct LaneBins {
  unsigned bin[4];  ///< less than 4,096
  unsigned counts;  ///< bit e: bin e counts
};

/// Adds 1 to each bin that counts; all lanes of the wave call. On a GPU
/// additions to one word queue, and rows of few values are common: where all
/// lanes bring the same bins, one of them adds for all.
template <int Wave>
__device__ inline void count(unsigned* bins, const LaneBins& mine) {
#if !defined(EXACT_TOPK_HIP_CPU)
  uint64_t all = mine.counts;
  EXACT_TOPK_UNROLL
  for (int e = 0; e < 4; ++e) all = all << 12 | mine.bin[e];
  if (all_same<Wave>(all)) {
    if (lane<Wave>() != 0) return;
    EXACT_TOPK_UNROLL
    for (int e = 0; e < 4; ++e)
      if (mine.counts >> e & 1u)
        atomicAdd(&bins[mine.bin[e]], static_cast<unsigned>(Wave));
    return;
  }
#endif
  EXACT_TOPK_UNROLL
  for (int e = 0; e < 4; ++e)
    if (mine.counts >> e & 1u) atomicAdd(&bins[mine.bin[e]], 1u);
}

}  // namespace exact_topk::hip
