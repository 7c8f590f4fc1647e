// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collecting what other blocks hand over, a whole area at a time by a whole
// block.

#include <cstdint>

#include "kernels/hip/atomics.h"
#include "kernels/hip/unroll.h"
#include "kernels/stages/formats.h"

namespace exact_topk::kernels::head {

// Waits for `count` pairs and calls take(i, payload) for each, a thread's in
// rising order; threads take neighbours, so that loads coalesce. Loads are
// issued several at a time: a thread waits for the slowest of them once, not
// for each in turn.
template <class Take>
__device__ inline void collect(const uint64_t* pairs, int count, uint32_t tag,
                               Take&& take) {
  constexpr int kFlight = 8;  // loads of a thread in flight
  const auto threads = static_cast<int>(blockDim.x);
  for (int start = static_cast<int>(threadIdx.x); start < count;
       start += threads * kFlight) {
    uint64_t word[kFlight];
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int i = start + f * threads;
      word[f] = i < count ? hip::detail::load_relaxed(pairs + i) : 0;
    }
    EXACT_TOPK_UNROLL
    for (int f = 0; f < kFlight; ++f) {
      const int i = start + f * threads;
      if (i >= count) continue;
      const bool ready = static_cast<uint32_t>(word[f] >> 32) == tag;
      take(i, ready ? static_cast<uint32_t>(word[f])
                    : hip::pair_poll(pairs + i, tag));
    }
  }
}

// Rows of an area for a thread that meets its items in rising order: a division
// for each would cost more than the item.
class RowCursor {
 public:
  __device__ explicit RowCursor(int items) : items_(items) {}

  // Goes on to item i of the area.
  __device__ void move_to(int i) {
    for (; i - first_ >= items_; first_ += items_) ++row_;
    item_ = i - first_;
  }
  __device__ int row() const { return row_; }
  __device__ int item() const { return item_; }  // of the row

 private:
  int items_;      // of a row
  int row_ = 0;    // reached
  int first_ = 0;  // its first item
  int item_ = 0;   // reached
};

}  // namespace exact_topk::kernels::head
