// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 6, the writing: keys above a threshold and keys at it, each to its own
// run of places, in position order. A thread counts a few neighbouring keys,
// one scan gives it its offsets, and it walks its keys again to place them.

#include <cstdint>

#include "kernels/stages/pages.h"
#include "kernels/stages/radix.h"

namespace exact_topk::kernels {

inline constexpr int kThreadKeys =
    16;  // neighbours that a thread places between two scans

// LDS of a placement. Two sets of totals alternate, so that one barrier a scan
// is enough.
struct PlaceLds {
  unsigned totals[2][kLargestWaves];  // of the waves, both counts packed
};

// One row's part of the list.
struct Entries {
  int32_t* list;         // the row's first entry
  const int32_t* table;  // the row's page table: entries are slots; nullptr:
                         // entries are positions

  __device__ void set(int index, int position) const {
    list[index] = table == nullptr ? position : slot_of(table, position);
  }
};

// Where a run of positions continues each of the two sequences.
struct Offsets {
  int above;  // keys above the threshold before the run
  int at;     // keys at it before the run
};

// Calls above(index, position) for every key of [begin, end) whose top `bits`
// exceed the threshold's, and at(index, position) for every key whose top bits
// are the same, with the index in its sequence.
template <int Wave, class Keys, class Above, class At>
__device__ inline void place(const Keys keys, int begin, int end,
                             const Threshold& threshold, Offsets offsets,
                             const Above& above, const At& at, PlaceLds& lds) {
  const int shift = kKeyBits - threshold.bits;
  const uint32_t target = threshold.prefix >> shift;
  const int tile = static_cast<int>(blockDim.x) * kThreadKeys;
  static_assert(1024 * kThreadKeys < 1 << 16,
                "both counts of a tile are packed into one word");
  int parity = 0;
  for (int start = begin; start < end; start += tile, parity ^= 1) {
    const int first = start + static_cast<int>(threadIdx.x) * kThreadKeys;
    const int last = first + kThreadKeys < end ? first + kThreadKeys : end;
    unsigned counts = 0;  // above in the upper half, at in the lower
    for (int i = first; i < last; ++i) {
      const uint32_t top = keys.key(i) >> shift;
      counts += top > target ? 0x10000u : static_cast<unsigned>(top == target);
    }
    const BlockScan scan = block_scan<Wave>(counts, lds.totals[parity]);
    int next_above = offsets.above + static_cast<int>(scan.before >> 16);
    int next_at = offsets.at + static_cast<int>(scan.before & 0xFFFFu);
    if (counts != 0) {
      for (int i = first; i < last; ++i) {
        const uint32_t top = keys.key(i) >> shift;
        if (top > target) {
          above(next_above++, keys.position(i));
        } else if (top == target) {
          at(next_at++, keys.position(i));
        }
      }
    }
    offsets.above += static_cast<int>(scan.all >> 16);
    offsets.at += static_cast<int>(scan.all & 0xFFFFu);
  }
}

}  // namespace exact_topk::kernels
