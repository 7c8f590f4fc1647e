// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/close.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "oracle/formats.h"

namespace exact_topk::harness {

double bf16_ulp(double value) {
  constexpr int kLowestExponent = -126, kMantissaBits = 7;
  const int exponent = value == 0
                           ? kLowestExponent
                           : std::max(std::ilogb(value), kLowestExponent);
  return std::ldexp(1.0, exponent - kMantissaBits);
}

std::string close_fault(std::span<const float> got,
                        std::span<const double> reference,
                        Allowance allowance) {
  double largest = 0;
  for (const double value : reference)
    largest = std::max(largest, std::abs(value));
  const double of_largest = allowance.of_largest * largest;
  size_t faults = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = allowance.bf16_ulp
                               ? std::max(of_largest, bf16_ulp(reference[i]))
                               : of_largest;
    const double distance = std::abs(double{got[i]} - reference[i]);
    if (!(distance <= allowed) || !std::isfinite(distance))
      if (faults++ == 0) first = i;
  }
  if (faults == 0) return "";
  return fmt::format(
      "element {} is {:.9g} ({:#010x}), the reference {:.17g}: off by {:.3g}, "
      "allowed {:.3g} (largest {:.9g}); {} of {} elements fail",
      first, got[first], std::bit_cast<uint32_t>(got[first]), reference[first],
      std::abs(double{got[first]} - reference[first]),
      allowance.bf16_ulp ? std::max(of_largest, bf16_ulp(reference[first]))
                         : of_largest,
      largest, faults, got.size());
}

std::string close_fault(std::span<const uint16_t> got_bf16,
                        std::span<const double> reference,
                        Allowance allowance) {
  std::vector<float> got(got_bf16.size());
  std::transform(got_bf16.begin(), got_bf16.end(), got.begin(),
                 oracle::bf16_to_f32);
  return close_fault(got, reference, allowance);
}

}  // namespace exact_topk::harness
