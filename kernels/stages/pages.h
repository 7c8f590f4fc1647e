// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a key lies in the paged cache. Offsets are 64 bits wide: a layer's
// cache passes 2^31 bytes.

#include <cstdint>

#include "kernels/geometry.h"
#include "kernels/hip/hip.h"

namespace exact_topk::kernels {

// Slot of a position in a row of the page table.
__host__ __device__ inline int32_t slot_of(const int32_t* table, int position) {
  return table[position / kPageKeys] * kPageKeys + position % kPageKeys;
}

// Byte of a layer's cache that holds a slot's dim. 16 dims that start at a
// multiple of 16 are neighbours in both layouts, and so are the 2,048 bytes of
// 16 keys that start at a multiple of 16.
__device__ inline int64_t key_byte(int32_t slot, int dim, PageLayout layout) {
  const int64_t page = int64_t{slot / kPageKeys} * kPageBytes;
  const int offset = slot % kPageKeys;
  if (layout == PageLayout::kPlain) return page + offset * kHeadDim + dim;
  return page + offset / 16 * (16 * kHeadDim) + dim / 16 * 256 +
         offset % 16 * 16 + dim % 16;
}

// Byte of a layer's cache at which a slot's scale begins.
__device__ inline int64_t scale_byte(int32_t slot) {
  return int64_t{slot / kPageKeys} * kPageBytes + kScalesOffset +
         slot % kPageKeys * 4;
}

}  // namespace exact_topk::kernels
