// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collecting what other blocks hand over, a whole area at a time by a whole
// block.

#include <cstdint>

#include "kernels/hip/atomics.h"
#include "kernels/hip/unroll.h"
#include "kernels/stages/formats.h"

namespace exact_topk::kernels::head {

// Waits for `count` pairs and calls take(i, payload) for each; threads take
// neighbours, so that loads coalesce. Loads are issued several at a time: a
// thread waits for the slowest of them once, not for each in turn.
template <class Take>
__device__ inline void collect(const uint64_t* pairs, int count, uint32_t tag,
                               int thread, int threads, const Take& take) {
  constexpr int kFlight = 8;  // loads of a thread in flight
  for (int start = thread; start < count; start += threads * kFlight) {
    uint64_t word[kFlight];
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int i = start + f * threads;
      word[f] = i < count ? hip::detail::load_relaxed(pairs + i) : 0;
    }
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int i = start + f * threads;
      if (i >= count) continue;
      const bool ready = static_cast<uint32_t>(word[f] >> 32) == tag;
      take(i, ready ? static_cast<uint32_t>(word[f])
                    : hip::pair_poll(pairs + i, tag));
    }
  }
}

template <class Take>
__device__ inline void collect(const uint64_t* pairs, int count, uint32_t tag,
                               const Take& take) {
  collect(pairs, count, tag, static_cast<int>(threadIdx.x),
          static_cast<int>(blockDim.x), take);
}

}  // namespace exact_topk::kernels::head
