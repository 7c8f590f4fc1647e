// SPDX-License-Identifier: Apache-2.0
#include "oracle/formats.h"

#include <cmath>

namespace exact_topk::oracle {

std::uint8_t f32_to_e4m3(float value, Fp8 format) {
  const bool fn = format == Fp8::kE4m3fn;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  if (std::isnan(value))
    return static_cast<std::uint8_t>(fn ? sign | 0x7Fu : 0x80u);

  const float magnitude = std::fabs(value);
  const int bias = e4m3_bias(format);
  std::uint32_t code;
  if (magnitude >= e4m3_max(format)) {
    code = fn ? 0x7Eu : 0x7Fu;
  } else if (magnitude < std::ldexp(1.0f, 1 - bias)) {
    // An f32 whose unit in the last place is the format's quantum: the sum is
    // rounded to it, and its low bits are the code.
    const float anchor = std::ldexp(1.0f, 1 - bias - 3 + 23);
    code = std::bit_cast<std::uint32_t>(magnitude + anchor) -
           std::bit_cast<std::uint32_t>(anchor);
  } else {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(magnitude);
    code = ((u + 0x7FFFFu + ((u >> 20) & 1u)) >> 20) -
           (std::uint32_t(127 - bias) << 3);
  }
  if (!fn && code == 0) return 0;
  return static_cast<std::uint8_t>(sign | code);
}

float key_scale(float amax_floored, Scale scale, Fp8 format) {
  const float ratio = amax_floored / e4m3_max(format);
  if (scale == Scale::kF32) return ratio;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(ratio);
  const int exponent = static_cast<int>((bits >> 23) & 255u) +
                       ((bits & 0x7FFFFFu) != 0 ? 1 : 0) - 127;
  return std::ldexp(1.0f, exponent);
}

}  // namespace exact_topk::oracle
