// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counting in LDS.

#include "kernels/hip/wave.h"

namespace exact_topk::hip {

/// Adds 1 to bins[bin] for every lane with `counts`; all lanes of the wave
/// call. On a GPU additions to one word queue, and rows of equal keys are
/// common: where all counting lanes agree, one of them adds for all.
template <int Wave>
__device__ inline void count(unsigned* bins, unsigned bin, bool counts) {
#if defined(EXACT_TOPK_HIP_CPU)
  if (counts) atomicAdd(&bins[bin], 1u);
#else
  const uint64_t voters = ballot<Wave>(counts);
  if (voters == 0) return;
  const int leader = __ffsll(static_cast<long long>(voters)) - 1;
  const unsigned first = shuffle<Wave>(bin, leader);
  if (all<Wave>(!counts || bin == first)) {
    if (lane<Wave>() == leader)
      atomicAdd(&bins[bin], static_cast<unsigned>(__popcll(voters)));
  } else if (counts) {
    atomicAdd(&bins[bin], 1u);
  }
#endif
}

}  // namespace exact_topk::hip
