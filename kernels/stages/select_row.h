// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 6: the list of one row in base order, by one block, or from runs of
// positions ("slices") that several blocks count and place. The order is that
// of SPEC section 3: keys above T's known bits, then candidates above T, then
// candidates equal to T, each in position order.

#include <cstdint>

#include "kernels/stages/place.h"

namespace exact_topk::kernels {

// LDS of a block that selects.
struct SelectLds {
  RadixLds radix;             // the search
  PlaceLds place;             // the placement
  int32_t candidates[kRoom];  // positions of the keys that share T's known bits
};

// Which way a row went; the host reads it back as the ABI's witness.
struct SelectPath {
  int bits;         // at which the search stopped: 0 (n <= k), 12, 24 or 32
  int slices;       // runs of positions
  int direct_ties;  // ties placed directly at 32 bits
  int staged;       // candidates resolved after an earlier stop
  int chunks;       // of the longest slice
};

__device__ inline SelectPath path_of(const Threshold& threshold, int slices) {
  const bool all_bits = threshold.bits == kKeyBits;
  return {threshold.bits, slices, all_bits ? threshold.wanted : 0,
          all_bits ? 0 : threshold.sharing, 1};
}

// All positions in order: n <= k.
__device__ inline void list_all(int n, const Entries& entries) {
  for (int i = static_cast<int>(threadIdx.x); i < n;
       i += static_cast<int>(blockDim.x))
    entries.set(i, i);
}

// Places the run [begin, end): keys above the threshold into the list; keys at
// it behind them where 32 bits are known, as many as are wanted, else into
// `candidates`. k is the row's entries.
template <int Wave>
__device__ inline void place_run(const RowKeys& keys, int begin, int end, int k,
                                 const Threshold& threshold, Offsets offsets,
                                 const Entries& entries, int32_t* candidates,
                                 PlaceLds& lds) {
  const auto look_up = [&](int i) { return entries_from(entries, i); };
  const auto above = [&](int index, const Placed& placed) {
    entries.list[index] = placed.entry;
  };
  const auto tie = [&](int index, const Placed& placed) {
    if (index < threshold.wanted)
      entries.list[k - threshold.wanted + index] = placed.entry;
  };
  const auto candidate = [&](int index, const Placed& placed) {
    candidates[index] = placed.number;
  };
  if (threshold.bits == kKeyBits) {
    place<Wave>(keys, begin, end, threshold, offsets, look_up, above, tie, lds);
  } else {
    place<Wave>(keys, begin, end, threshold, offsets, look_up, above, candidate,
                lds);
  }
}

// Completes the list from the candidates of a search that stopped early.
template <int Wave>
__device__ inline void resolve(const CandidateKeys& keys, int k,
                               const Threshold& stopped, const Entries& entries,
                               RadixLds& radix, PlaceLds& lds) {
  const Threshold threshold = search_candidates<Wave>(keys, stopped, radix);
  const auto look_up = [&](int i) {
    LaneEntries found;
    EXACT_TOPK_UNROLL
    for (int e = 0; e < kLaneKeys; ++e)
      found.entry[e] =
          i + e < stopped.sharing ? entries.entry(keys.positions[i + e]) : 0;
    return found;
  };
  const auto above = [&](int index, const Placed& placed) {
    entries.list[k - stopped.wanted + index] = placed.entry;
  };
  const auto tie = [&](int index, const Placed& placed) {
    if (index < threshold.wanted)
      entries.list[k - threshold.wanted + index] = placed.entry;
  };
  place<Wave>(keys, 0, stopped.sharing, threshold, Offsets{0, 0}, look_up,
              above, tie, lds);
}

// The whole row of n > k keys by this block.
template <int Wave>
__device__ inline SelectPath select_row(const RowKeys& keys, int n, int k,
                                        const Entries& entries,
                                        SelectLds& lds) {
  const auto digit_bits = [](const Threshold& t) { return t.digit_bits(); };
  const auto stops = [](const Threshold& t) { return t.stops(); };
  const Threshold threshold = search<Wave>(keys, n, Threshold{0, 0, k, n},
                                           digit_bits, stops, lds.radix);
  place_run<Wave>(keys, 0, n, k, threshold, Offsets{0, 0}, entries,
                  lds.candidates, lds.place);
  __syncthreads();
  if (threshold.bits != kKeyBits)
    resolve<Wave>(CandidateKeys{keys.scores, lds.candidates}, k, threshold,
                  entries, lds.radix, lds.place);
  return path_of(threshold, 1);
}

}  // namespace exact_topk::kernels
