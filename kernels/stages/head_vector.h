// SPDX-License-Identifier: Apache-2.0
#pragma once

// The 128 values of one head, or of one key, spread over the lanes of a wave:
// lane l holds the 128 / Wave neighbours that start at dim l * (128 / Wave).
// What index query and index key have in common works on it: rope, Hadamard,
// tree sums. All of it is bitwise: every product and sum is rounded on its own
// (SPEC section 3, stages 3 and 4).

#include "kernels/geometry.h"
#include "kernels/hip/wave.h"

namespace exact_topk::kernels {

template <int Wave>
struct HeadVector {
  static constexpr int kEach = kHeadDim / Wave;  // values a lane
  float value[kEach];                            // those of dims first_dim() ..

  __device__ static int first_dim() { return hip::lane<Wave>() * kEach; }

  __device__ static HeadVector load(const float* source) {
    HeadVector v;
    for (int e = 0; e < kEach; ++e) v.value[e] = source[first_dim() + e];
    return v;
  }
};

// The values `stride` dims away: dim d gets that of d ^ stride, a power of two.
template <int Wave>
__device__ inline HeadVector<Wave> partners(const HeadVector<Wave>& v,
                                            int stride) {
  constexpr int kEach = HeadVector<Wave>::kEach;
  HeadVector<Wave> other;
  for (int e = 0; e < kEach; ++e)
    other.value[e] = stride < kEach
                         ? v.value[e ^ stride]
                         : hip::shuffle_xor<Wave>(v.value[e], stride / kEach);
  return other;
}

// Rotates dims 0..63 by a row of the rope table.
template <int Wave>
__device__ inline HeadVector<Wave> rope(const HeadVector<Wave>& v,
                                        const float* cosines,
                                        const float* sines, Rope pairs) {
  const bool interleaved = pairs == Rope::kInterleaved;
  const int stride = interleaved ? 1 : kRopePairs;
  const HeadVector<Wave> other = partners(v, stride);
  HeadVector<Wave> rotated = v;
  for (int e = 0; e < HeadVector<Wave>::kEach; ++e) {
    const int dim = HeadVector<Wave>::first_dim() + e;
    if (dim >= kRopeDims) break;
    const int pair = interleaved ? dim / 2 : dim % kRopePairs;
    const float turned = other.value[e] * sines[pair];
    const float kept = v.value[e] * cosines[pair];
    rotated.value[e] = (dim & stride) == 0 ? kept - turned : kept + turned;
  }
  return rotated;
}

// The 128-point Hadamard transform, strides 1, 2, 4 .. 64, then one
// multiplication by f32(128^-1/2).
template <int Wave>
__device__ inline HeadVector<Wave> hadamard(HeadVector<Wave> v) {
  constexpr float kFactor = __builtin_bit_cast(float, 0x3DB504F3u);
  for (int stride = 1; stride < kHeadDim; stride *= 2) {
    const HeadVector<Wave> other = partners(v, stride);
    for (int e = 0; e < HeadVector<Wave>::kEach; ++e) {
      const bool first = ((HeadVector<Wave>::first_dim() + e) & stride) == 0;
      v.value[e] =
          first ? v.value[e] + other.value[e] : other.value[e] - v.value[e];
    }
  }
  for (int e = 0; e < HeadVector<Wave>::kEach; ++e)
    v.value[e] = v.value[e] * kFactor;
  return v;
}

// The sum in the order t[i] += t[i + 64], then + 32 .. + 1, known to every
// lane. Every dim goes through the additions of dim 0 with operands swapped,
// which rounds the same.
template <int Wave>
__device__ inline float tree_sum(HeadVector<Wave> v) {
  for (int stride = kHeadDim / 2; stride > 0; stride /= 2) {
    const HeadVector<Wave> other = partners(v, stride);
    for (int e = 0; e < HeadVector<Wave>::kEach; ++e)
      v.value[e] = v.value[e] + other.value[e];
  }
  return v.value[0];
}

}  // namespace exact_topk::kernels
