// SPDX-License-Identifier: Apache-2.0
#include "oracle/score_format.h"

#include <algorithm>
#include <cmath>

#include "oracle/elements.h"
#include "oracle/formats.h"

namespace exact_topk::oracle {

std::size_t score_bytes(ScoreFormat format) {
  return format == ScoreFormat::kF32 ? sizeof(float) : sizeof(std::uint16_t);
}

std::vector<float> decode_scores(std::span<const std::byte> bytes,
                                 ScoreFormat format) {
  switch (format) {
    case ScoreFormat::kF32:
      return elements<float>(bytes);
    case ScoreFormat::kF16:
      return converted<float, std::uint16_t>(bytes, f16_to_f32);
    case ScoreFormat::kBf16:
      return converted<float, std::uint16_t>(bytes, bf16_to_f32);
  }
  return {};
}

double half_ulp(float value, ScoreFormat format) {
  if (format == ScoreFormat::kF32 || !std::isfinite(value)) return 0;
  const bool half = format == ScoreFormat::kF16;
  const int lowest_exponent = half ? -14 : -126;
  const int mantissa_bits = half ? 10 : 7;
  const int exponent = value == 0
                           ? lowest_exponent
                           : std::max(std::ilogb(value), lowest_exponent);
  return std::ldexp(0.5, exponent - mantissa_bits);
}

}  // namespace exact_topk::oracle
