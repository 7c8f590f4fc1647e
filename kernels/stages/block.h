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

// The sum over all threads; `totals` is LDS of kLargestWaves entries that
// nothing else uses meanwhile.
template <int Wave>
__device__ inline float block_sum(float value, float* totals) {
  const float total = hip::wave_sum<Wave>(value);
  if (hip::lane<Wave>() == 0) totals[hip::wave<Wave>()] = total;
  __syncthreads();
  float sum = 0.0f;
  for (int w = 0; w < waves_of_block<Wave>(); ++w) sum += totals[w];
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
  BlockScan scan{inclusive - value, 0};
  for (int w = 0; w < waves_of_block<Wave>(); ++w) {
    if (w < hip::wave<Wave>()) scan.before += totals[w];
    scan.all += totals[w];
  }
  return scan;
}

}  // namespace exact_topk::kernels
