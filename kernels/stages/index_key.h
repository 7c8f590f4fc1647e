// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 4: one index key, by one wave: LayerNorm, rope, Hadamard, scale, FP8.
// Bitwise from the raw key.

#include <math.h>

#include <cstdint>

#include "kernels/stages/formats.h"
#include "kernels/stages/head_vector.h"
#include "kernels/stages/pages.h"

namespace exact_topk::kernels {

// A key as cached, spread over a wave as HeadVector is.
template <int Wave>
struct QuantisedKey {
  uint8_t byte[HeadVector<Wave>::kEach];  // the lane's dims
  float scale;                            // the key's, in every lane
};

// (d * rstd) * gamma + beta, with sums in tree order.
template <int Wave>
__device__ inline HeadVector<Wave> layer_norm(HeadVector<Wave> v,
                                              const float* gamma,
                                              const float* beta, float eps) {
  using Vector = HeadVector<Wave>;
  const float mean = tree_sum(v) / static_cast<float>(kHeadDim);
  Vector squares;
  for (int e = 0; e < Vector::kEach; ++e) {
    v.value[e] = v.value[e] - mean;
    squares.value[e] = v.value[e] * v.value[e];
  }
  const float variance = tree_sum(squares) / static_cast<float>(kHeadDim);
  const float rstd = 1.0f / sqrtf(variance + eps);
  for (int e = 0; e < Vector::kEach; ++e) {
    const int dim = Vector::first_dim() + e;
    v.value[e] = v.value[e] * rstd * gamma[dim] + beta[dim];
  }
  return v;
}

template <int Wave>
__device__ inline QuantisedKey<Wave> quantise(const HeadVector<Wave>& v,
                                              Scale scale, Fp8 format) {
  constexpr float kFloor = 1e-4f;
  constexpr int kEach = HeadVector<Wave>::kEach;
  float largest = kFloor;
  for (int e = 0; e < kEach; ++e) largest = fmaxf(largest, fabsf(v.value[e]));
  QuantisedKey<Wave> key;
  key.scale = key_scale(hip::wave_max<Wave>(largest), scale, format);
  for (int e = 0; e < kEach; ++e)
    key.byte[e] = f32_to_e4m3(v.value[e] / key.scale, format);
  return key;
}

// The key of a raw one; `cosines` and `sines` are the row's of the rope table.
template <int Wave>
__device__ inline QuantisedKey<Wave> index_key(
    const HeadVector<Wave>& raw, const float* gamma, const float* beta,
    const float* cosines, const float* sines, const Geometry& geometry) {
  HeadVector<Wave> v = layer_norm(raw, gamma, beta, geometry.layer_norm_eps);
  v = rope(v, cosines, sines, geometry.rope);
  if (geometry.hadamard) v = hadamard(v);
  return quantise(v, geometry.scale, geometry.fp8);
}

template <int Wave>
__device__ inline void store_key(const QuantisedKey<Wave>& key, int32_t slot,
                                 PageLayout layout, uint8_t* cache) {
  constexpr int kEach = HeadVector<Wave>::kEach;
  uint8_t* bytes =
      cache + key_byte(slot, HeadVector<Wave>::first_dim(), layout);
  for (int e = 0; e < kEach; ++e) bytes[e] = key.byte[e];
  if (hip::lane<Wave>() == 0)
    *reinterpret_cast<float*>(cache + scale_byte(slot)) = key.scale;
}

}  // namespace exact_topk::kernels
