// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collectives of a block, from those of its waves. Every thread of the block
// takes part in each.

#include "kernels/hip/hip.h"
#include "kernels/hip/wave.h"

namespace exact_topk::kernels {

inline constexpr int kLargestWaves =
    32;  // of a block: 1,024 threads in waves of 32

template <int Wave>
__device__ inline int waves_of_block() {
  return static_cast<int>(blockDim.x) / Wave;
}

// The sum over all threads, in one order whatever the wave size: within groups
// of 32 lanes by halves, then group after group. `totals` is LDS of
// kLargestWaves entries that nothing else uses meanwhile.
template <int Wave>
__device__ inline float block_sum(float value, float* totals) {
  constexpr int kGroup = 32;
  for (int d = kGroup / 2; d > 0; d /= 2)
    value += hip::shuffle_xor<Wave>(value, d);
  if (threadIdx.x % kGroup == 0) totals[threadIdx.x / kGroup] = value;
  __syncthreads();
  float sum = 0.0f;
  for (unsigned g = 0; g < blockDim.x / kGroup; ++g) sum += totals[g];
  return sum;
}

// Exclusive sum over the threads before this one, and over all.
struct BlockScan {
  unsigned before;  // of the threads before this one
  unsigned all;     // of the block
};

// `totals` is LDS of kLargestWaves entries; one call may follow another only
// with other entries or a barrier between.
template <int Wave>
__device__ inline BlockScan block_scan(unsigned value, unsigned* totals) {
  const unsigned inclusive = hip::wave_inclusive_scan<Wave>(value);
  if (hip::lane<Wave>() == Wave - 1) totals[hip::wave<Wave>()] = inclusive;
  __syncthreads();
  const int lane = hip::lane<Wave>();
  const unsigned total = lane < waves_of_block<Wave>() ? totals[lane] : 0;
  const unsigned through = hip::wave_inclusive_scan<Wave>(total);
  const unsigned before =
      hip::shuffle<Wave>(through - total, hip::wave<Wave>());
  return {before + inclusive - value,
          hip::shuffle<Wave>(through, waves_of_block<Wave>() - 1)};
}

}  // namespace exact_topk::kernels
