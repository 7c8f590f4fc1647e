// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wave collectives, templated on the wave size (64 or 32), the same on every
// platform down to the order of sums.
//
// Every lane of the wave that has not exited calls the same collective at the
// same place. Shuffles read active lanes only; sums, maxima and scans need all
// Wave lanes. On the CPU each is one meeting, and a kernel compiled for another
// wave size than the run's is reported. No collective orders memory: for that
// there are barriers.

#include "kernels/hip/hip.h"

#if defined(EXACT_TOPK_HIP_CPU)
#include <functional>
#else
#include <stdint.h>
#endif

namespace exact_topk::hip {

/// The wave sizes that this platform's kernels are built for; the same where
/// it has one.
#if defined(EXACT_TOPK_HIP_AMD)
inline constexpr int kSmallWave = 64;
#else
inline constexpr int kSmallWave = 32;
#endif
#if defined(EXACT_TOPK_HIP_NVIDIA)
inline constexpr int kLargeWave = 32;
#else
inline constexpr int kLargeWave = 64;
#endif

#if defined(EXACT_TOPK_HIP_CPU)

namespace cpu {
/// Fails the launch unless its waves have Wave lanes.
template <int Wave>
void require_wave() {
  static_assert(Wave == 64 || Wave == 32);
  if (current->block->wave_size != Wave) [[unlikely]]
    fail_wave_size(Wave);
}
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
}  // namespace cpu

#define EXACT_TOPK_SITE cpu::Site site = cpu::Site::here()

/// This thread's lane, 0..Wave-1.
template <int Wave>
int lane() {
  cpu::require_wave<Wave>();
  return static_cast<int>(cpu::current->lane);
}
/// Index of this thread's wave in its block.
template <int Wave>
int wave() {
  cpu::require_wave<Wave>();
  return static_cast<int>(cpu::current->wave);
}
/// The value of lane `source`, 0..Wave-1.
template <int Wave, class T>
T shuffle(T value, int source, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::exchange(value, source, cpu::kWholeWave, site);
}
/// The value of lane `lane ^ mask`.
template <int Wave, class T>
T shuffle_xor(T value, int mask, EXACT_TOPK_SITE) {
  return shuffle<Wave>(value, lane<Wave>() ^ mask, site);
}
/// The value of lane `lane - delta`; the own value in the first `delta` lanes.
template <int Wave, class T>
T shuffle_up(T value, int delta, EXACT_TOPK_SITE) {
  const int self = lane<Wave>();
  return shuffle<Wave>(value, self < delta ? self : self - delta, site);
}
/// Bit l: lane l votes yes. Lanes that have exited vote no.
template <int Wave>
uint64_t ballot(bool vote, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::ballot(vote, cpu::kWholeWave, site);
}
template <int Wave>
bool any(bool vote, EXACT_TOPK_SITE) {
  return ballot<Wave>(vote, site) != 0;
}
/// Whether every lane that has not exited votes yes.
template <int Wave>
bool all(bool vote, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::all(vote, cpu::kWholeWave, site);
}
/// Sum over the wave in butterfly order (lanes Wave/2 apart first, neighbours
/// last): the same bits in every lane.
template <int Wave>
float wave_sum(float value, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::reduce<std::plus<float>>(value, site);
}
/// Maximum over the wave; no NaN.
template <int Wave, class T>
T wave_max(T value, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::reduce<cpu::Larger>(value, site);
}
/// Sum of lanes 0..lane, modulo 2^32.
template <int Wave>
uint32_t wave_inclusive_scan(uint32_t value, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::inclusive_scan(value, site);
}
/// Sum of lanes 0..lane-1, modulo 2^32.
template <int Wave>
uint32_t wave_exclusive_scan(uint32_t value, EXACT_TOPK_SITE) {
  return wave_inclusive_scan<Wave>(value, site) - value;
}

/// Sum over the wave, modulo 2^32, in every lane.
template <int Wave>
uint32_t wave_total(uint32_t value, EXACT_TOPK_SITE) {
  cpu::require_wave<Wave>();
  return cpu::reduce<std::plus<uint32_t>>(value, site);
}

#undef EXACT_TOPK_SITE

#else

namespace detail {
#if defined(EXACT_TOPK_HIP_NVIDIA)
template <class T>
__device__ inline T read_lane(T value, int source) {
  return __shfl_sync(~0u, value, source);
}
__device__ inline uint64_t vote(bool yes) { return __ballot_sync(~0u, yes); }
#else
template <class T>
__device__ inline T read_lane(T value, int source) {
  return __shfl(value, source);
}
__device__ inline uint64_t vote(bool yes) { return __ballot(yes); }
#endif
__device__ inline int thread() {
  return static_cast<int>(
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
}  // namespace detail

template <int Wave>
__device__ inline int lane() {
  return detail::thread() % Wave;
}
template <int Wave>
__device__ inline int wave() {
  return detail::thread() / Wave;
}
template <int Wave, class T>
__device__ inline T shuffle(T value, int source) {
  return detail::read_lane(value, source);
}
template <int Wave, class T>
__device__ inline T shuffle_xor(T value, int mask) {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  return __shfl_xor_sync(~0u, value, mask);
#else
  return __shfl_xor(value, mask);
#endif
}
template <int Wave, class T>
__device__ inline T shuffle_up(T value, int delta) {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  return __shfl_up_sync(~0u, value, delta);
#else
  return __shfl_up(value, delta);
#endif
}
template <int Wave>
__device__ inline uint64_t ballot(bool yes) {
  return detail::vote(yes);
}
template <int Wave>
__device__ inline bool any(bool yes) {
  return detail::vote(yes) != 0;
}
template <int Wave>
__device__ inline bool all(bool yes) {
  return detail::vote(!yes) == 0;
}
/// Whether every lane has the same value.
template <int Wave>
__device__ inline bool all_same(uint64_t value) {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  int same = 0;
  __match_all_sync(~0u, static_cast<unsigned long long>(value), &same);
  return same != 0;
#else
  return all<Wave>(value == shuffle<Wave>(value, 0));
#endif
}
template <int Wave>
__device__ inline float wave_sum(float value) {
#pragma unroll
  for (int d = Wave / 2; d > 0; d /= 2) value += shuffle_xor<Wave>(value, d);
  return value;
}
template <int Wave, class T>
__device__ inline T wave_max(T value) {
#pragma unroll
  for (int d = Wave / 2; d > 0; d /= 2) {
    const T other = shuffle_xor<Wave>(value, d);
    value = value < other ? other : value;
  }
  return value;
}
template <int Wave>
__device__ inline uint32_t wave_total(uint32_t value) {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  return __reduce_add_sync(~0u, value);
#else
#pragma unroll
  for (int d = Wave / 2; d > 0; d /= 2) value += shuffle_xor<Wave>(value, d);
  return value;
#endif
}
template <int Wave>
__device__ inline uint32_t wave_inclusive_scan(uint32_t value) {
#pragma unroll
  for (int d = 1; d < Wave; d *= 2) {
    const uint32_t below = shuffle_up<Wave>(value, d);
    if (lane<Wave>() >= d) value += below;
  }
  return value;
}
template <int Wave>
__device__ inline uint32_t wave_exclusive_scan(uint32_t value) {
  return wave_inclusive_scan<Wave>(value) - value;
}

#endif

/// How many lanes below this one have their bit set in a ballot: the lane's
/// place among the voters.
template <int Wave>
__device__ inline int rank_in_ballot(uint64_t mask) {
  return __popcll(mask & ((uint64_t{1} << lane<Wave>()) - 1));
}

}  // namespace exact_topk::hip
