// SPDX-License-Identifier: Apache-2.0
#include "harness/score_format.h"

#include <algorithm>
#include <cmath>

namespace exact_topk::harness {

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

}  // namespace exact_topk::harness
