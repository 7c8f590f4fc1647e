// SPDX-License-Identifier: Apache-2.0
//
// The number formats of the indexer: bf16, the two e4m3, and the scale of a
// quantised key (SPEC section 3, stage 4); f16 for those who use it. Decoding
// is exact; encoding rounds to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "oracle/geometry.h"

namespace exact_topk::oracle {

constexpr float bf16_to_f32(std::uint16_t code) {
  return std::bit_cast<float>(std::uint32_t{code} << 16);
}

// Nearest, ties to even; NaN stays NaN with its sign.
constexpr std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >>
                                    16);
}

constexpr float f16_to_f32(std::uint16_t code) {
  const std::uint32_t magnitude = code & 0x7FFFu;
  const std::uint32_t rebias = (magnitude < 0x7C00u ? 112u : 224u) << 23;
  const float value = magnitude < 0x0400u
                          ? static_cast<float>(magnitude) * 0x1p-24f
                          : std::bit_cast<float>((magnitude << 13) + rebias);
  return (code & 0x8000u) != 0 ? -value : value;
}

// Nearest, ties to even; beyond 65504 infinity, NaN stays NaN with its sign.
// Below the normal range the sum with 0.5, whose ulp is the format's quantum,
// rounds and counts quanta at once.
constexpr std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t code;
  if (magnitude > 0x7F800000u)
    code = 0x7E00u;
  else if (magnitude >= 0x477FF000u)
    code = 0x7C00u;
  else if (magnitude < 0x38800000u)
    code =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
        std::bit_cast<std::uint32_t>(0.5f);
  else
    code =
        ((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  return static_cast<std::uint16_t>(code | (bits >> 16 & 0x8000u));
}

// The exponent bias of a format, and its largest finite value.
constexpr int e4m3_bias(Fp8 format) { return format == Fp8::kE4m3fn ? 7 : 8; }
constexpr float e4m3_max(Fp8 format) {
  return format == Fp8::kE4m3fn ? 448.0f : 240.0f;
}

// NaN is 0x7F and 0xFF of e4m3fn, 0x80 of e4m3fnuz. A normal code's fields
// slide into those of an f32; a subnormal one counts quanta.
constexpr float e4m3_to_f32(std::uint8_t code, Fp8 format) {
  const bool fn = format == Fp8::kE4m3fn;
  const std::uint32_t magnitude = code & 0x7Fu;
  if (fn ? magnitude == 0x7Fu : code == 0x80u)
    return std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t rebias = std::uint32_t(127 - e4m3_bias(format)) << 23;
  const float quantum = fn ? 0x1p-9f : 0x1p-10f;
  const float value = magnitude < 8
                          ? static_cast<float>(magnitude) * quantum
                          : std::bit_cast<float>((magnitude << 20) + rebias);
  return (code & 0x80u) != 0 ? -value : value;
}

// Nearest, ties to even, saturating with the sign; NaN encodes NaN. The sign of
// zero is kept by e4m3fn; e4m3fnuz has one zero, 0x00.
std::uint8_t f32_to_e4m3(float value, Fp8 format);

// The scale of a key whose largest magnitude, floored at 1e-4, is given:
// amax / max of the format, for kUe8m0 raised to the next power of two where it
// is none.
float key_scale(float amax_floored, Scale scale, Fp8 format);

}  // namespace exact_topk::oracle
