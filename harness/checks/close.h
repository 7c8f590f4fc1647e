// SPDX-License-Identifier: Apache-2.0
//
// Values of the stages whose sums SPEC leaves open (x, q_lora, mailbox, raw key
// and w; SPEC section 6, check 3) against their f64 references. A NaN or an
// infinity is never close to anything.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace exact_topk::harness {

// How far a value may be from its reference: the larger of the two.
struct Allowance {
  double of_largest = 0;  // times the row's largest |reference|
  bool bf16_ulp = false;  // one bf16 ulp of the reference
};

inline constexpr Allowance kX{0, true};
inline constexpr Allowance kQLora{2e-5, true};
inline constexpr Allowance kProjected{3e-5, false};  // mailbox, raw key, w

// Distance from one bf16 value to the next at |value|.
double bf16_ulp(double value);

// What is wrong with one row, empty where nothing is.
std::string close_fault(std::span<const float> got,
                        std::span<const double> reference, Allowance allowance);
std::string close_fault(std::span<const uint16_t> got_bf16,
                        std::span<const double> reference, Allowance allowance);

}  // namespace exact_topk::harness
