// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stage 6 in the head arm: the exact list of a row from up to 64 slices of its
// positions, in base order, without a flag, a fence or a reset.
//
// The slices find T's known bits together. Each digit takes one histogram in
// LDS and two gathers: 64 coarse bins, then the bins below the coarse one in
// which the k-th falls. In a gather every slice publishes its counts as tagged
// pairs and reads everybody's, so that each derives the same threshold alone,
// and besides how many keys of the slices before its own lie above it and at
// it. With 12 or 24 bits known and no more candidates than the room, the slices
// exchange the candidates' other bits, each resolves T alone and places its
// own; with all 32 known, ties go straight to their places. Three gathers
// settle a row in the common case.
//
// A block may own several slices, of one row or of several. It publishes for
// all of them before it polls for any (SPEC section 4, and the proof in
// tests/kernels/layout_test.cpp): step by step, never slice by slice.
//
// Measured (SELECTION.md, H200): a search like this is a chain of latencies;
// gathers cost 0.65 us each, whatever the bins, so there are few of them, and
// reading the keys again is cheap.

#include <cstdint>

#include "kernels/head/hand_off.h"
#include "kernels/head/operands.h"
#include "kernels/stages/select_row.h"

namespace exact_topk::kernels::head {

inline constexpr int kCoarseBits =
    6;  // of each digit; the others are the fine ones
inline constexpr int kCoarseBins = 1 << kCoarseBits;
inline constexpr int kMostOwned =
    136;  // slices of one block: 8 rows of 17 slices on a grid of one block

// One slice that this block owns, between the steps of the search.
struct OwnedSlice {
  int row;              // of the launch
  int index;            // among the row's slices
  int slices;           // of the row
  Threshold threshold;  // known so far
  uint32_t coarse;      // found in the first gather of a digit: its coarse bin
  int above_before;  // keys above the known bits in the slices before this one
  int at_before;     // keys that share them there
  int at;            // keys that share them in this slice
};

// LDS of a block that selects.
struct SliceLds {
  RadixLds radix;  // histogram of a digit, and the search among candidates
  PlaceLds place;  // placement
  uint32_t counts[layout::kMaxSlices]
                 [kGatherWords];  // a gather: two 16-bit counts a word
  uint32_t candidates[kRoom];  // bits of the row's candidates that the prefix
                               // leaves open, in position order
  uint32_t keys[layout::kSliceRoom];  // radix keys of the first chunk of the
                                      // only slice
  OwnedSlice owned[kMostOwned];       // this block's slices
  int owned_count;                    // how many
};

// The keys of a slice: radix keys in LDS for the first chunk where the block
// owns no other slice, scores read again beyond.
struct SliceKeys {
  const float* scores;   // the row's, from position 0
  const uint32_t* held;  // radix keys of positions begin .. held_end - 1
  int begin;             // first position held
  int held_end;          // one past the last position held

  __device__ int position(int i) const { return i; }
  __device__ uint32_t key(int i) const {
    return i < held_end ? held[i - begin] : radix_key(scores[i]);
  }
};

// Bits of a digit that the second gather finds.
__device__ inline int fine_bits(const Threshold& known) {
  return known.digit_bits() - kCoarseBits;
}

// The row's place in the selection.
struct SliceView {
  const Operands& o;

  __device__ layout::Range range(const OwnedSlice& s) const {
    return layout::slice(o.front.rows.keys(s.row), s.slices, s.index);
  }
  __device__ SliceKeys keys(const OwnedSlice& s, const SliceLds& lds) const {
    const layout::Range r = range(s);
    const int begin = static_cast<int>(r.begin);
    const int room = lds.owned_count == 1 ? layout::kSliceRoom : 0;
    return {o.select.row_scores(s.row), lds.keys, begin,
            static_cast<int>(layout::smaller(r.end, begin + room))};
  }
  __device__ uint64_t* gather_pairs(const OwnedSlice& s, int gather,
                                    int slice) const {
    return o.pairs.gather +
           ((int64_t{gather} * layout::kMaxRows + s.row) * layout::kMaxSlices +
            slice) *
               kGatherWords;
  }
  __device__ Entries entries(int row) const {
    return {o.select.list + o.select.indptr[row], o.front.rows.table(row)};
  }
};

// ---- which slices are mine
// ----------------------------------------------------------------------------------------------------

// Lists the rows of n <= k whose first slice this block would have, and notes
// its slices of the longer ones.
__device__ inline void take_slices(const Operands& o, SliceLds& lds) {
  const RowTables& rows = o.front.rows;
  const int blocks = static_cast<int>(gridDim.x);
  const int me = static_cast<int>(blockIdx.x);
  int live = 0;
  for (int row = 0; row < rows.rows; ++row) live += rows.keys(row) > 0 ? 1 : 0;
  int owned = 0;
  int rank = 0;
  for (int row = 0; row < rows.rows; ++row) {
    const int n = rows.keys(row);
    if (n == 0) continue;
    const int first = layout::slice_block(rank++, live, blocks, 0);
    if (n <= o.select.k) {
      if (first != me) continue;
      list_all(n, SliceView{o}.entries(row));
      if (threadIdx.x == 0) o.paths[row] = {0, 1, 0, 0, 1};
      continue;
    }
    const int slices = layout::select_slices(n, live, blocks, o.most_slices);
    for (int i = (me - first + blocks) % blocks; i < slices;
         i += blocks, ++owned)
      if (threadIdx.x == 0)
        lds.owned[owned] = {row, i, slices, {0, 0, o.select.k, n}, 0, 0, 0, 0};
  }
  if (threadIdx.x == 0) lds.owned_count = owned;
  __syncthreads();
}

// Waits until every score of the slice is stored: every run of pages that
// overlaps it says so with release order.
__device__ inline void await_scores(const Operands& o,
                                    const layout::RowsView& view,
                                    const layout::Groups& groups,
                                    const OwnedSlice& s) {
  const layout::Range range = SliceView{o}.range(s);
  const layout::Group group = layout::group_of(groups, s.row);
  const int64_t keys = view.keys(group.first + group.rows - 1);
  const int runs = layout::score_runs(keys, static_cast<int>(gridDim.x));
  const int first = layout::run_of(keys, runs, range.begin / kPageKeys);
  const int last = layout::run_of(keys, runs, (range.end - 1) / kPageKeys);
  for (int run = first + static_cast<int>(threadIdx.x); run <= last;
       run += static_cast<int>(blockDim.x))
    hip::pair_wait_acquire(
        o.pairs.run_done + group.first * layout::kMaxRuns + run, o.tag);
}

// ---- one gather
// ---------------------------------------------------------------------------------------------------------------

// Publishes this slice's counts of the gather's bins from the digit's histogram
// in LDS: coarse ones are sums of fine ones.
__device__ inline void publish_counts(const SliceView& view,
                                      const OwnedSlice& s, int gather,
                                      const SliceLds& lds) {
  const bool coarse = gather % 2 == 0;
  const int fine = fine_bits(s.threshold);
  const int bins = coarse ? kCoarseBins : 1 << fine;
  const auto count = [&](int bin) {
    if (!coarse)
      return lds.radix.bins[(s.coarse << fine) + static_cast<uint32_t>(bin)];
    unsigned sum = 0;
    for (int b = 0; b < 1 << fine; ++b)
      sum += lds.radix.bins[(bin << fine) + b];
    return sum;
  };
  uint64_t* pairs = view.gather_pairs(s, gather, s.index);
  for (int word = static_cast<int>(threadIdx.x); word < bins / 2;
       word += static_cast<int>(blockDim.x))
    hip::pair_store(pairs + word, count(2 * word) | count(2 * word + 1) << 16,
                    view.o.tag);
}

// What one gather says: the bin in which the k-th falls, and what lies where.
struct GatherResult {
  uint32_t bin;      // found
  int above;         // keys of the row in larger bins
  int at;            // keys of the row in it
  int above_before;  // keys in larger bins in the slices before this one
  int at_before;     // keys in it in the slices before this one
  int at_own;        // keys in it in this slice
};

__device__ inline unsigned count_of(const SliceLds& lds, int slice, int bin) {
  return lds.counts[slice][bin / 2] >> (bin % 2 * 16) & 0xFFFFu;
}

// By one wave, from all slices' counts in LDS: `wanted` keys are to come from
// these bins.
template <int Wave>
__device__ inline GatherResult find_bin(const SliceLds& lds, int slices,
                                        int index, int bins, int wanted) {
  constexpr int kEach =
      kCoarseBins /
      Wave;  // neighbouring bins of a lane, the first lane's the largest
  const int lane = hip::lane<Wave>();
  unsigned total[kEach];
  unsigned sum = 0;
  for (int e = 0; e < kEach; ++e) {
    const int bin = bins - 1 - (lane * kEach + e);
    total[e] = 0;
    if (bin >= 0)
      for (int s = 0; s < slices; ++s) total[e] += count_of(lds, s, bin);
    sum += total[e];
  }
  unsigned above = hip::wave_exclusive_scan<Wave>(sum);
  const auto need = static_cast<unsigned>(wanted);
  const bool mine = above < need && need <= above + sum;
  int e = 0;
  if (mine)
    while (above + total[e] < need) above += total[e++];
  const uint64_t finder = hip::ballot<Wave>(mine);
  const int source = __ffsll(static_cast<unsigned long long>(finder)) - 1;
  GatherResult found;
  found.bin = hip::shuffle<Wave>(
      static_cast<uint32_t>(bins - 1 - (lane * kEach + e)), source);
  found.above = static_cast<int>(hip::shuffle<Wave>(above, source));
  found.at = static_cast<int>(hip::shuffle<Wave>(total[e], source));
  unsigned above_before = 0;
  unsigned at_before = 0;
  for (int s = lane; s < index; s += Wave) {
    for (int bin = static_cast<int>(found.bin) + 1; bin < bins; ++bin)
      above_before += count_of(lds, s, bin);
    at_before += count_of(lds, s, static_cast<int>(found.bin));
  }
  found.above_before = static_cast<int>(hip::shuffle<Wave>(
      hip::wave_inclusive_scan<Wave>(above_before), Wave - 1));
  found.at_before = static_cast<int>(
      hip::shuffle<Wave>(hip::wave_inclusive_scan<Wave>(at_before), Wave - 1));
  found.at_own =
      static_cast<int>(count_of(lds, index, static_cast<int>(found.bin)));
  return found;
}

// Reads every slice's counts and narrows the threshold.
template <int Wave>
__device__ inline void read_counts(const SliceView& view, OwnedSlice& s,
                                   int gather, SliceLds& lds) {
  const bool coarse = gather % 2 == 0;
  const int fine = fine_bits(s.threshold);
  const int bins = coarse ? kCoarseBins : 1 << fine;
  const int words = bins / 2;
  const uint64_t* pairs = view.gather_pairs(s, gather, 0);
  if (words == kGatherWords) {
    collect(pairs, s.slices * kGatherWords, view.o.tag,
            [&](int i, uint32_t payload) {
              lds.counts[i / kGatherWords][i % kGatherWords] = payload;
            });
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < s.slices * words;
         i += static_cast<int>(blockDim.x))
      lds.counts[i / words][i % words] = hip::pair_poll(
          pairs + i / words * kGatherWords + i % words, view.o.tag);
  }
  __syncthreads();
  if (hip::wave<Wave>() == 0) {
    const GatherResult found =
        find_bin<Wave>(lds, s.slices, s.index, bins, s.threshold.wanted);
    if (hip::lane<Wave>() == 0) {
      s.above_before += found.above_before;
      s.threshold.wanted -= found.above;
      if (coarse) {
        s.coarse = found.bin;
      } else {
        const int bits = s.threshold.bits + s.threshold.digit_bits();
        s.at_before = found.at_before;
        s.at = found.at_own;
        s.threshold.sharing = found.at;
        s.threshold.prefix |= (s.coarse << fine | found.bin)
                              << (kKeyBits - bits);
        s.threshold.bits = bits;
      }
    }
  }
  __syncthreads();
}

// ---- candidates
// ---------------------------------------------------------------------------------------------------------------

// The candidates of a row as every slice has them after the exchange: their
// whole keys again, numbered in position order.
struct SharedCandidates {
  const uint32_t* low;  // bits that the prefix leaves open
  uint32_t prefix;      // the bits that they share

  __device__ int position(int i) const { return i; }
  __device__ uint32_t key(int i) const { return prefix | low[i]; }
};

// Places the slice's keys above the known bits, and hands on or places those at
// them.
template <int Wave>
__device__ inline void place_slice(const SliceView& view, const OwnedSlice& s,
                                   SliceLds& lds) {
  const Operands& o = view.o;
  const layout::Range range = view.range(s);
  const SliceKeys keys = view.keys(s, lds);
  const Entries entries = view.entries(s.row);
  const Threshold& threshold = s.threshold;
  const Offsets offsets{s.above_before, s.at_before};
  const auto above = [&](int index, int position) {
    entries.set(index, position);
  };
  const auto begin = static_cast<int>(range.begin);
  const auto end = static_cast<int>(range.end);
  if (threshold.bits == kKeyBits) {
    const auto tie = [&](int index, int position) {
      if (index < threshold.wanted)
        entries.set(o.select.k - threshold.wanted + index, position);
    };
    place<Wave>(keys, begin, end, threshold, offsets, above, tie, lds.place);
  } else {
    uint64_t* pairs = o.pairs.candidate + int64_t{s.row} * kRoom;
    int32_t* own = o.select.own_candidates + int64_t{s.row} * kRoom;
    const uint32_t open = ~0u >> threshold.bits;
    const auto candidate = [&](int index, int position) {
      own[index] = position;
      hip::pair_store(pairs + index, keys.key(position) & open, o.tag);
    };
    place<Wave>(keys, begin, end, threshold, offsets, above, candidate,
                lds.place);
  }
}

// Resolves T among all candidates of the row and places this slice's own.
template <int Wave>
__device__ inline void resolve_slice(const SliceView& view, const OwnedSlice& s,
                                     SliceLds& lds) {
  const Operands& o = view.o;
  const Threshold& stopped = s.threshold;
  const int32_t* own = o.select.own_candidates + int64_t{s.row} * kRoom;
  const Entries entries = view.entries(s.row);
  collect(o.pairs.candidate + int64_t{s.row} * kRoom, stopped.sharing, o.tag,
          [&](int i, uint32_t payload) { lds.candidates[i] = payload; });
  __syncthreads();
  const SharedCandidates keys{lds.candidates, stopped.prefix};
  const auto exact = [](const Threshold& t) { return t.bits == kKeyBits; };
  const Threshold threshold =
      search<Wave>(keys, stopped.sharing, stopped, exact, lds.radix);
  const int first = s.at_before;
  const auto mine = [&](int candidate) {
    return candidate >= first && candidate < first + s.at;
  };
  const auto above = [&](int index, int candidate) {
    if (mine(candidate))
      entries.set(o.select.k - stopped.wanted + index, own[candidate]);
  };
  const auto tie = [&](int index, int candidate) {
    if (mine(candidate) && index < threshold.wanted)
      entries.set(o.select.k - threshold.wanted + index, own[candidate]);
  };
  place<Wave>(keys, 0, stopped.sharing, threshold, Offsets{0, 0}, above, tie,
              lds.place);
  __syncthreads();
}

// ---- the whole
// ----------------------------------------------------------------------------------------------------------------

// Radix keys of the only slice's first chunk into LDS, by 16-byte loads: slices
// start on 16-byte boundaries of aligned rows.
__device__ inline void hold_keys(const SliceView& view, const OwnedSlice& s,
                                 SliceLds& lds) {
  const SliceKeys keys = view.keys(s, lds);
  for (int i = keys.begin + static_cast<int>(threadIdx.x); i < keys.held_end;
       i += static_cast<int>(blockDim.x))
    lds.keys[i - keys.begin] = radix_key(keys.scores[i]);
  __syncthreads();
}

// The digit's histogram of a slice in LDS.
__device__ inline void count_digit(const SliceView& view, const OwnedSlice& s,
                                   SliceLds& lds) {
  const layout::Range range = view.range(s);
  clear_bins(lds.radix);
  add_digits(view.keys(s, lds), static_cast<int>(range.begin),
             static_cast<int>(range.end), s.threshold, lds.radix);
  __syncthreads();
}

__device__ inline void note_path(const SliceView& view, const OwnedSlice& s) {
  if (s.index != 0 || threadIdx.x != 0) return;
  SelectPath path = path_of(s.threshold, s.slices);
  path.chunks = layout::slice_chunks(
      layout::longest_slice(view.o.front.rows.keys(s.row), s.slices));
  view.o.paths[s.row] = path;
}

// This block's slices, from scores to list.
template <int Wave>
__device__ inline void select_stage(const Operands& o,
                                    const layout::RowsView& rows,
                                    const layout::Groups& groups,
                                    std::byte* raw_lds) {
  SliceLds& lds = *reinterpret_cast<SliceLds*>(raw_lds);
  const SliceView view{o};
  take_slices(o, lds);
  const int owned = lds.owned_count;
  if (owned == 0) return;
  if (o.parts & kScorePart) {
    for (int i = 0; i < owned; ++i) await_scores(o, rows, groups, lds.owned[i]);
    __syncthreads();
  }
  if (owned == 1) hold_keys(view, lds.owned[0], lds);
  for (int gather = 0; gather < kGathers; ++gather) {
    bool searching = false;
    for (int i = 0; i < owned; ++i) {
      const OwnedSlice& s = lds.owned[i];
      if (s.threshold.stops()) continue;
      searching = true;
      if (gather % 2 == 0 || owned > 1)
        count_digit(
            view, s,
            lds);  // the second gather reads the only slice's histogram again
      publish_counts(view, s, gather, lds);
      __syncthreads();
    }
    if (!searching) break;
    for (int i = 0; i < owned; ++i)
      if (!lds.owned[i].threshold.stops())
        read_counts<Wave>(view, lds.owned[i], gather, lds);
  }
  for (int i = 0; i < owned; ++i) {
    place_slice<Wave>(view, lds.owned[i], lds);
    note_path(view, lds.owned[i]);
    __syncthreads();
  }
  for (int i = 0; i < owned; ++i)
    if (lds.owned[i].threshold.bits != kKeyBits)
      resolve_slice<Wave>(view, lds.owned[i], lds);
}

}  // namespace exact_topk::kernels::head
