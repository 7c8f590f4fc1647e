// SPDX-License-Identifier: Apache-2.0
//
// Where things lie in a paged cache (SPEC section 2): slot s is token s % 64 of
// page s / 64; a page is its key bytes, then its 64 f32 scales. The
// preshuffled layout keeps runs of 16 dims of one token together, and 16 tokens
// of one such run next to each other; scales are not shuffled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "oracle/geometry.h"

namespace exact_topk::oracle {

// Byte of dim `dim` of the key in `slot`, counted from the layer's cache.
constexpr std::size_t key_byte(std::int64_t slot, int dim, PageLayout layout) {
  const std::int64_t page = slot / kPageTokens, token = slot % kPageTokens;
  const std::int64_t within =
      layout == PageLayout::kPlain
          ? token * kHeadDim + dim
          : token / 16 * 2048 + dim / 16 * 256 + token % 16 * 16 + dim % 16;
  return static_cast<std::size_t>(page * kPageBytes + within);
}

// First byte of the f32 scale of the key in `slot`.
constexpr std::size_t scale_byte(std::int64_t slot) {
  return static_cast<std::size_t>(slot / kPageTokens * kPageBytes +
                                  kPageTokens * kHeadDim +
                                  slot % kPageTokens * 4);
}

// The slot of a row's position, by the row's page table.
constexpr std::int64_t slot_of(std::span<const std::int32_t> table,
                               std::int64_t position) {
  return std::int64_t{table[static_cast<std::size_t>(position / kPageTokens)]} *
             kPageTokens +
         position % kPageTokens;
}

// Pages that n keys take.
constexpr std::int64_t pages_of(std::int64_t keys) {
  return (keys + kPageTokens - 1) / kPageTokens;
}

}  // namespace exact_topk::oracle
