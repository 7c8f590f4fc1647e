// SPDX-License-Identifier: Apache-2.0
//
// The one right selection of a row of scores (SPEC section 3, stage 6): radix
// keys, the base order, and the exact top k as a set.
//
// base_order finds the threshold by histograms of 12, 12 and 8 bits and places
// every key in one pass; exact_top_k partitions (key, position) pairs with
// std::nth_element. They share nothing but radix_key, so that each is a check
// of the other.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace exact_topk::oracle {

// The most keys that may share the threshold's prefix for the base order to
// stop there.
inline constexpr std::int64_t kCandidateRoom = 4096;

// Unsigned order of these is the order of scores: -NaN lowest, then -inf, ..
// -0.0, +0.0, .. +inf, +NaN.
constexpr std::uint32_t radix_key(float score) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

struct BaseOrder {
  std::vector<std::int32_t> positions;  // min(n, k), in base order
  int bits = 0;                         // 12, 24 or 32; 0 where n <= k
  std::uint32_t threshold = 0;  // T: radix key of the min(n, k)-th largest
  std::int64_t ties = 0;        // keys of the row equal to T, selected or not
};

// k >= 1. All positions in order where n <= k.
BaseOrder base_order(std::span<const float> scores, int k);

// The positions of the k largest by radix key, ties to the lowest position,
// ascending. k >= 1.
std::vector<std::int32_t> exact_top_k(std::span<const float> scores, int k);
// The same of keys that rank by other rules than the radix key's.
std::vector<std::int32_t> exact_top_k(std::span<const std::uint32_t> keys,
                                      int k);

}  // namespace exact_topk::oracle
