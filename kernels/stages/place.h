// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 6, the writing: keys above a threshold and keys at it, each to its own
// run of places, in position order. Each wave of a block takes one run of
// neighbouring keys: it counts them, learns how many the waves before it have,
// and walks them again, four keys a lane at a time, to place them.

#include <cstdint>

#include "kernels/stages/pages.h"
#include "kernels/stages/radix.h"

namespace exact_topk::kernels {

// Where a run of positions continues each of the two sequences.
struct Offsets {
  int above;  // keys above the threshold before the run
  int at;     // keys at it before the run
};

// LDS of a placement; the next one may begin after a barrier.
struct PlaceLds {
  Offsets totals[kLargestWaves];  // keys of each wave
};

// One row's part of the list.
struct Entries {
  int32_t* list;         // the row's first entry
  const int32_t* table;  // the row's page table: entries are slots; nullptr:
                         // entries are positions

  // What stands for a position. Four positions from a multiple of four on lie
  // in one page: theirs follow one another.
  __device__ int entry(int position) const {
    return table == nullptr ? position : slot_of(table, position);
  }
  __device__ void set(int index, int position) const {
    list[index] = entry(position);
  }
};

// What stands for four keys, looked up before it is known whether they are
// selected: a placement would otherwise wait for each.
struct LaneEntries {
  int32_t entry[kLaneKeys];
};

// Those of the positions from i on.
__device__ inline LaneEntries entries_from(const Entries& entries, int i) {
  const int first = entries.entry(i);
  return {{first, first + 1, first + 2, first + 3}};
}

// A key as it is placed.
struct Placed {
  int number;    // of the key among those that are looked at
  int entry;     // what stands for it
  uint32_t key;  // itself
};

// Calls above(index, placed) for every key of [begin, end) whose top `bits`
// exceed the threshold's, and at(index, placed) for every key whose top bits
// are the same, with the index in its sequence. look_up(i) gives what stands
// for keys i and up to three after it. A wave's share is less than 65,536 keys.
template <int Wave, class Keys, class LookUp, class Above, class At>
__device__ inline void place(const Keys& keys, int begin, int end,
                             const Threshold threshold, Offsets offsets,
                             const LookUp& look_up, const Above& above,
                             const At& at, PlaceLds& lds) {
  const int shift = kKeyBits - threshold.bits;
  const uint32_t target = threshold.prefix >> shift;
  // Keys above in the upper half, keys at in the lower.
  const auto counted = [&](const LaneKeys& mine) {
    unsigned counts = 0;
    EXACT_TOPK_UNROLL
    for (int e = 0; e < kLaneKeys; ++e) {
      const uint32_t top = mine.key[e] >> shift;
      if (e < mine.count)
        counts +=
            top > target ? 0x10000u : static_cast<unsigned>(top == target);
    }
    return counts;
  };
  constexpr int kStep = Wave * kLaneKeys;
  const int waves = waves_of_block<Wave>();
  const int steps = (end - begin + waves * kStep - 1) / (waves * kStep);
  const int first = begin + hip::wave<Wave>() * steps * kStep;
  const int last = first + steps * kStep < end ? first + steps * kStep : end;
  const int mine = hip::lane<Wave>() * kLaneKeys;
  unsigned all = 0;
  for (int i = first + mine; i < last; i += kStep)
    all += counted(LaneKeys(keys, i, last));
  all = hip::wave_inclusive_scan<Wave>(all);
  if (hip::lane<Wave>() == Wave - 1)
    lds.totals[hip::wave<Wave>()] = {static_cast<int>(all >> 16),
                                     static_cast<int>(all & 0xFFFFu)};
  __syncthreads();
  const auto total = hip::lane<Wave>() < hip::wave<Wave>()
                         ? lds.totals[hip::lane<Wave>()]
                         : Offsets{0, 0};
  offsets.above += static_cast<int>(
      hip::wave_total<Wave>(static_cast<uint32_t>(total.above)));
  offsets.at +=
      static_cast<int>(hip::wave_total<Wave>(static_cast<uint32_t>(total.at)));
  for (int start = first; start < last; start += kStep) {
    const LaneKeys lane(keys, start + mine, last);
    const unsigned counts = counted(lane);
    LaneEntries entries = {};
    if (counts != 0) entries = look_up(start + mine);
    const unsigned through = hip::wave_inclusive_scan<Wave>(counts);
    const unsigned before = through - counts;
    int next_above = offsets.above + static_cast<int>(before >> 16);
    int next_at = offsets.at + static_cast<int>(before & 0xFFFFu);
    EXACT_TOPK_UNROLL
    for (int e = 0; e < kLaneKeys; ++e) {
      const uint32_t top = lane.key[e] >> shift;
      if (e >= lane.count) continue;
      const Placed placed{start + mine + e, entries.entry[e], lane.key[e]};
      if (top > target) {
        above(next_above++, placed);
      } else if (top == target) {
        at(next_at++, placed);
      }
    }
    const unsigned step = hip::shuffle<Wave>(through, Wave - 1);
    offsets.above += static_cast<int>(step >> 16);
    offsets.at += static_cast<int>(step & 0xFFFFu);
  }
}

}  // namespace exact_topk::kernels
