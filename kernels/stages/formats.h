// SPDX-License-Identifier: Apache-2.0
#pragma once

// Number formats of the chain: bf16, the two e4m3 formats, and the scale of a
// key. Everything here is bitwise: the same bits on every backend (SPEC section
// 3).

#include <cstdint>

#include "kernels/geometry.h"
#include "kernels/hip/hip.h"

namespace exact_topk::kernels {

__device__ inline uint32_t float_bits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
__device__ inline float bits_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

__device__ inline float bf16_to_f32(uint16_t code) {
  return bits_float(uint32_t{code} << 16);
}

// Nearest, ties to even; a NaN stays one.
__device__ inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

__device__ inline float e4m3_largest(Fp8 format) {
  return format == Fp8::kE4m3fn ? 448.0f : 240.0f;
}

// Nearest, ties to even, saturating with the sign. e4m3fn keeps the sign of
// zero; e4m3fnuz has one zero, 0x00, and one NaN, 0x80.
__device__ inline uint8_t f32_to_e4m3(float value, Fp8 format) {
  const bool fn = format == Fp8::kE4m3fn;
  const uint32_t bits = float_bits(value);
  const uint32_t sign = bits >> 24 & 0x80u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return static_cast<uint8_t>(fn ? sign | 0x7Fu : 0x80u);
  const float size = bits_float(magnitude);
  const uint32_t bias = fn ? 7 : 8;
  const uint32_t least_normal =
      127 + 1 - bias;  // exponent field of the least normal value, as f32
  uint32_t code;
  if (size > e4m3_largest(format)) {
    code = fn ? 0x7Eu : 0x7Fu;
  } else if (magnitude < least_normal << 23) {
    // Subnormal: a count of steps. Adding 2^23 steps rounds to a whole count,
    // and eight steps are the least normal.
    const float bit_of_step = bits_float((least_normal - 3 + 23) << 23);
    code = float_bits(size + bit_of_step) & 0xFu;
  } else {
    const uint32_t rounded =
        (magnitude + 0x7FFFFu + (magnitude >> 20 & 1u)) >> 20;
    code = rounded - ((127 - bias) << 3);
  }
  if (!fn && code == 0) return 0;
  return static_cast<uint8_t>(sign | code);
}

// The scale of a key whose largest magnitude, floored at 1e-4, is this.
__device__ inline float key_scale(float largest, Scale scale, Fp8 format) {
  const float exact = largest / e4m3_largest(format);
  if (scale == Scale::kF32) return exact;
  const uint32_t bits = float_bits(exact);
  return bits_float(((bits >> 23 & 255u) + ((bits & 0x7FFFFFu) != 0 ? 1u : 0u))
                    << 23);
}

}  // namespace exact_topk::kernels
