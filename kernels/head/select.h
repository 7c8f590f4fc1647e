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
// own; with all 32 known, ties go straight to their places. Where the keys that
// share 12 bits are too many, the next gather also says whether they are all
// equal, as in rows of zeros, and the search is over. Three gathers settle a
// row in the common cases.
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
inline constexpr int kExtremeGather =
    2;  // the first one that can find all keys in question equal
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

// Counts of two neighbouring bins, as some slices have them.
struct alignas(16) BinPair {
  unsigned all[2];     // keys of each bin
  unsigned before[2];  // those in slices before the reader's own
};

inline constexpr int kGatherGroups =
    kThreads / kGatherWords;  // threads that share a gather's slices for a word

// What of a row's slices is a block's.
struct RowShare {
  int first;   // its first one; every blocks-th after it is, too
  int slices;  // of the row, 1 where it is listed whole, 0 without keys
};

// LDS of a block that selects.
struct SliceLds {
  RowShare shares[layout::kMaxRows];  // of this block
  RadixLds radix;  // histogram of a digit, and the search among candidates
  PlaceLds place;  // placement
  BinPair gathered[kGatherGroups][kGatherWords];  // sums over some slices each
  uint32_t own_counts[kGatherWords];   // what the reader's own slice published
  uint32_t extreme[2][kLargestWaves];  // of the waves' keys: the largest, and
                                       // the largest complement
  uint32_t extremes[layout::kMaxSlices][2];  // of the slices' keys
  alignas(16) uint32_t candidates[kRoom];  // bits of the row's candidates that
                                           // the prefix leaves open, in
                                           // position order
  alignas(16) uint32_t keys[layout::kSliceRoom];  // radix keys of the first
                                                  // chunk of the only slice
  OwnedSlice owned[kMostOwned];                   // this block's slices
  int owned_count;                                // how many
};

// The keys of a slice: radix keys in LDS for the first chunk where the block
// owns no other slice, scores read again beyond.
struct SliceKeys {
  const float* scores;   // the row's, from position 0
  const uint32_t* held;  // radix keys of positions begin .. held_end - 1
  int begin;             // first position held
  int held_end;          // one past the last position held

  __device__ uint32_t key(int i) const {
    return i < held_end ? held[i - begin] : radix_key(scores[i]);
  }
  __device__ uint4 four(int i) const {
    if (i + kLaneKeys <= held_end)
      return *reinterpret_cast<const uint4*>(held + (i - begin));
    return {key(i), key(i + 1), key(i + 2), key(i + 3)};
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
  __device__ uint64_t* extreme_pairs(const OwnedSlice& s, int slice) const {
    return o.pairs.extreme + (int64_t{s.row} * layout::kMaxSlices + slice) * 2;
  }
  __device__ Entries entries(int row) const {
    return {o.select.list + o.select.indptr[row], o.front.rows.table(row)};
  }
};

// ---- which slices are mine
// ----------------------------------------------------------------------------------------------------

// Lists the rows of n <= k whose first slice this block would have, and notes
// its slices of the longer ones. A thread works out each row's.
__device__ inline void take_slices(const Operands& o, SliceLds& lds) {
  const RowTables& rows = o.front.rows;
  const int blocks = static_cast<int>(gridDim.x);
  const auto me = static_cast<int>(threadIdx.x);
  if (me < rows.rows) {
    int live = 0;
    int rank = 0;
    for (int row = 0; row < rows.rows; ++row) {
      const int counts = rows.keys(row) > 0 ? 1 : 0;
      live += counts;
      rank += row < me ? counts : 0;
    }
    const int n = rows.keys(me);
    const int first = layout::slice_block(rank, live, blocks, 0);
    const int ahead = static_cast<int>(blockIdx.x) - first;
    lds.shares[me] = {ahead < 0 ? ahead + blocks : ahead,
                      n == 0            ? 0
                      : n <= o.select.k ? 1
                                        : layout::select_slices(n, live, blocks,
                                                                o.most_slices)};
  }
  __syncthreads();
  int owned = 0;
  for (int row = 0; row < rows.rows; ++row) {
    const RowShare share = lds.shares[row];
    const int n = rows.keys(row);
    for (int i = share.first; i < share.slices; i += blocks) {
      if (n <= o.select.k) {
        list_all(n, SliceView{o}.entries(row));
        if (threadIdx.x == 0) o.paths[row] = {0, 1, 0, 0, 1};
      } else {
        if (threadIdx.x == 0)
          lds.owned[owned] = {row, i, share.slices, {0, 0, o.select.k, n}, 0, 0,
                              0,   0};
        ++owned;
      }
    }
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

// The digit's histogram of a slice in LDS, and what it says of the slice's
// extremes.
template <int Wave>
__device__ inline void count_digit(const SliceView& view, const OwnedSlice& s,
                                   SliceLds& lds) {
  const layout::Range range = view.range(s);
  clear_bins(kBins, lds.radix);
  uint32_t largest = 0;
  uint32_t complement = 0;
  add_digits<Wave>(
      view.keys(s, lds), static_cast<int>(range.begin),
      static_cast<int>(range.end), s.threshold, s.threshold.digit_bits(),
      [&](uint32_t key) {
        largest = key > largest ? key : largest;
        complement = ~key > complement ? ~key : complement;
      },
      lds.radix);
  if (s.threshold.bits == kDigitBits) {
    largest = hip::wave_max<Wave>(largest);
    complement = hip::wave_max<Wave>(complement);
    if (hip::lane<Wave>() == 0) {
      lds.extreme[0][hip::wave<Wave>()] = largest;
      lds.extreme[1][hip::wave<Wave>()] = complement;
    }
  }
  __syncthreads();
}

// Publishes the coarse counts of a digit of 12 bits: each thread adds 8 fine
// bins, 8 threads a coarse one, 16 a word.
template <int Wave>
__device__ inline void publish_coarse(const SliceView& view, uint64_t* pairs,
                                      const SliceLds& lds) {
  constexpr int kEach = 8;
  for (int first = static_cast<int>(threadIdx.x) * kEach; first < kBins;
       first += static_cast<int>(blockDim.x) * kEach) {
    const auto* bins = reinterpret_cast<const uint4*>(lds.radix.bins + first);
    const uint4 a = bins[0];
    const uint4 b = bins[1];
    unsigned sum = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
    sum += hip::shuffle_xor<Wave>(sum, 1);
    sum += hip::shuffle_xor<Wave>(sum, 2);
    sum += hip::shuffle_xor<Wave>(sum, 4);
    const unsigned next = hip::shuffle_xor<Wave>(sum, 8);
    if (threadIdx.x % 16 == 0)
      hip::pair_store(pairs + first / (2 * kCoarseBins), sum | next << 16,
                      view.o.tag);
  }
}

// Publishes this slice's counts of the gather's bins from the digit's histogram
// in LDS: coarse ones are sums of fine ones. Words past the bins are 0.
template <int Wave>
__device__ inline void publish_counts(const SliceView& view,
                                      const OwnedSlice& s, int gather,
                                      const SliceLds& lds) {
  const bool coarse = gather % 2 == 0;
  const int fine = fine_bits(s.threshold);
  uint64_t* pairs = view.gather_pairs(s, gather, s.index);
  if (gather == kExtremeGather && threadIdx.x < 2) {
    uint32_t extreme = 0;
    for (int w = 0; w < waves_of_block<Wave>(); ++w) {
      const uint32_t mine = lds.extreme[threadIdx.x][w];
      extreme = mine > extreme ? mine : extreme;
    }
    hip::pair_store(view.extreme_pairs(s, s.index) + threadIdx.x, extreme,
                    view.o.tag);
  }
  if (coarse && fine == kCoarseBits)
    return publish_coarse<Wave>(view, pairs, lds);
  const int bins = coarse ? kCoarseBins : 1 << fine;
  const auto count = [&](int bin) {
    if (!coarse)
      return lds.radix.bins[(s.coarse << fine) + static_cast<uint32_t>(bin)];
    unsigned sum = 0;
    for (int b = 0; b < 1 << fine; ++b)
      sum += lds.radix.bins[(bin << fine) + b];
    return sum;
  };
  for (int word = static_cast<int>(threadIdx.x); word < kGatherWords;
       word += static_cast<int>(blockDim.x))
    hip::pair_store(
        pairs + word,
        2 * word < bins ? count(2 * word) | count(2 * word + 1) << 16 : 0,
        view.o.tag);
}

// Waits for every slice's counts; a thread adds one word of some slices.
__device__ inline void gather_counts(const SliceView& view, const OwnedSlice& s,
                                     int gather, SliceLds& lds) {
  static_assert(kThreads % kGatherWords == 0);
  const auto thread = static_cast<int>(threadIdx.x);
  BinPair sum = {};
  collect(view.gather_pairs(s, gather, 0), s.slices * kGatherWords, view.o.tag,
          [&](int i, uint32_t counts) {
            const int slice = i / kGatherWords;
            sum.all[0] += counts & 0xFFFFu;
            sum.all[1] += counts >> 16;
            if (slice < s.index) {
              sum.before[0] += counts & 0xFFFFu;
              sum.before[1] += counts >> 16;
            }
            if (slice == s.index) lds.own_counts[i % kGatherWords] = counts;
          });
  lds.gathered[thread / kGatherWords][thread % kGatherWords] = sum;
  if (gather == kExtremeGather && thread < 2 * s.slices)
    lds.extremes[thread / 2][thread % 2] =
        hip::pair_poll(view.extreme_pairs(s, 0) + thread, view.o.tag);
  __syncthreads();
}

// Keys of a row that share the known bits.
struct Extremes {
  uint32_t largest;   // of them
  uint32_t smallest;  // of them
};

// By one wave. A slice without such keys has published no extremes above 0.
template <int Wave>
__device__ inline Extremes row_extremes(const SliceLds& lds, int slices) {
  uint32_t largest = 0;
  uint32_t complement = 0;
  for (int i = hip::lane<Wave>(); i < slices; i += Wave) {
    largest = lds.extremes[i][0] > largest ? lds.extremes[i][0] : largest;
    complement =
        lds.extremes[i][1] > complement ? lds.extremes[i][1] : complement;
  }
  return {hip::wave_max<Wave>(largest), ~hip::wave_max<Wave>(complement)};
}

// By one wave, from the gathered counts: narrows the slice's threshold by the
// bin in which the k-th falls. A lane looks at two neighbouring bins, the first
// lane at the largest. `known` is the slice as it was before the gather's
// barrier: the lane that finds the bin writes while others still look.
template <int Wave>
__device__ inline void narrow(const OwnedSlice& known, int gather,
                              const SliceLds& lds, OwnedSlice& s) {
  const int word = kGatherWords - 1 - hip::lane<Wave>();
  BinPair sum = {};
  if (word >= 0) {
    for (int g = 0; g < kGatherGroups; ++g) {
      const BinPair& some = lds.gathered[g][word];
      for (int b = 0; b < 2; ++b) {
        sum.all[b] += some.all[b];
        sum.before[b] += some.before[b];
      }
    }
  }
  const unsigned both = sum.all[0] + sum.all[1];
  unsigned above = hip::wave_exclusive_scan<Wave>(both);
  unsigned above_before =
      hip::wave_exclusive_scan<Wave>(sum.before[0] + sum.before[1]);
  const auto wanted = static_cast<unsigned>(known.threshold.wanted);
  if (above >= wanted || wanted > above + both) return;
  const int b = wanted <= above + sum.all[1] ? 1 : 0;
  if (b == 0) {
    above += sum.all[1];
    above_before += sum.before[1];
  }
  const auto bin = static_cast<uint32_t>(2 * word + b);
  s.above_before = known.above_before + static_cast<int>(above_before);
  s.threshold.wanted = known.threshold.wanted - static_cast<int>(above);
  if (gather % 2 == 0) {
    s.coarse = bin;
    return;
  }
  const int bits = known.threshold.bits + known.threshold.digit_bits();
  s.at_before = static_cast<int>(sum.before[b]);
  s.at = static_cast<int>(lds.own_counts[word] >> (b * 16) & 0xFFFFu);
  s.threshold.sharing = static_cast<int>(sum.all[b]);
  s.threshold.prefix = known.threshold.prefix |
                       (known.coarse << fine_bits(known.threshold) | bin)
                           << (kKeyBits - bits);
  s.threshold.bits = bits;
}

// Reads every slice's counts and narrows the threshold.
template <int Wave>
__device__ inline void read_counts(const SliceView& view, OwnedSlice& s,
                                   int gather, SliceLds& lds) {
  const OwnedSlice known = s;
  gather_counts(view, known, gather, lds);
  if (hip::wave<Wave>() == 0) {
    bool equal = false;
    if (gather == kExtremeGather) {
      const Extremes extremes = row_extremes<Wave>(lds, known.slices);
      equal = extremes.largest == extremes.smallest;
      if (equal && hip::lane<Wave>() == 0) {
        s.threshold.prefix = extremes.largest;
        s.threshold.bits = kKeyBits;
      }
    }
    if (!equal) narrow<Wave>(known, gather, lds, s);
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

  __device__ uint32_t key(int i) const { return prefix | low[i]; }
  __device__ uint4 four(int i) const {
    const uint4 v = *reinterpret_cast<const uint4*>(low + i);
    return {prefix | v.x, prefix | v.y, prefix | v.z, prefix | v.w};
  }
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
  const Threshold threshold = s.threshold;
  const Offsets offsets{s.above_before, s.at_before};
  const auto look_up = [&](int i) { return entries_from(entries, i); };
  const auto above = [&](int index, const Placed& placed) {
    entries.list[index] = placed.entry;
  };
  const auto begin = static_cast<int>(range.begin);
  const auto end = static_cast<int>(range.end);
  if (threshold.bits == kKeyBits) {
    const auto tie = [&](int index, const Placed& placed) {
      if (index < threshold.wanted)
        entries.list[o.select.k - threshold.wanted + index] = placed.entry;
    };
    place<Wave>(keys, begin, end, threshold, offsets, look_up, above, tie,
                lds.place);
  } else {
    uint64_t* pairs = o.pairs.candidate + int64_t{s.row} * kRoom;
    int32_t* own = o.select.own_candidates + int64_t{s.row} * kRoom;
    const uint32_t open = ~0u >> threshold.bits;
    const auto candidate = [&](int index, const Placed& placed) {
      own[index] = placed.entry;
      hip::pair_store(pairs + index, placed.key & open, o.tag);
    };
    place<Wave>(keys, begin, end, threshold, offsets, look_up, above, candidate,
                lds.place);
  }
}

// Resolves T among all candidates of the row and places this slice's own.
template <int Wave>
__device__ inline void resolve_slice(const SliceView& view, const OwnedSlice& s,
                                     SliceLds& lds) {
  const Operands& o = view.o;
  const Threshold stopped = s.threshold;
  const int32_t* own = o.select.own_candidates + int64_t{s.row} * kRoom;
  const Entries entries = view.entries(s.row);
  collect(o.pairs.candidate + int64_t{s.row} * kRoom, stopped.sharing, o.tag,
          [&](int i, uint32_t payload) { lds.candidates[i] = payload; });
  __syncthreads();
  const SharedCandidates keys{lds.candidates, stopped.prefix};
  const Threshold threshold = search_candidates<Wave>(keys, stopped, lds.radix);
  const int first = s.at_before;
  const int last = first + s.at;
  const auto mine = [&](int candidate) {
    return candidate >= first && candidate < last;
  };
  const auto look_up = [&](int i) {
    LaneEntries found;
    EXACT_TOPK_UNROLL
    for (int e = 0; e < kLaneKeys; ++e)
      found.entry[e] = mine(i + e) ? own[i + e] : 0;
    return found;
  };
  const auto above = [&](int index, const Placed& placed) {
    if (mine(placed.number))
      entries.list[o.select.k - stopped.wanted + index] = placed.entry;
  };
  const auto tie = [&](int index, const Placed& placed) {
    if (mine(placed.number) && index < threshold.wanted)
      entries.list[o.select.k - threshold.wanted + index] = placed.entry;
  };
  place<Wave>(keys, 0, stopped.sharing, threshold, Offsets{0, 0}, look_up,
              above, tie, lds.place);
  __syncthreads();
}

// ---- the whole
// ----------------------------------------------------------------------------------------------------------------

// Radix keys of the only slice's first chunk into LDS, by 16-byte loads where
// the row is aligned: slices start on page boundaries.
__device__ inline void hold_keys(const SliceView& view, const OwnedSlice& s,
                                 SliceLds& lds) {
  const SliceKeys keys = view.keys(s, lds);
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  const float* scores = keys.scores + keys.begin;
  const int count = keys.held_end - keys.begin;
  const bool aligned = reinterpret_cast<uintptr_t>(scores) % 16 == 0;
  const int vectors = aligned ? count / kLaneKeys : 0;
  for (int i = thread; i < vectors; i += threads) {
    const float4 four = reinterpret_cast<const float4*>(scores)[i];
    reinterpret_cast<uint4*>(lds.keys)[i] = {
        radix_key(four.x), radix_key(four.y), radix_key(four.z),
        radix_key(four.w)};
  }
  for (int i = vectors * kLaneKeys + thread; i < count; i += threads)
    lds.keys[i] = radix_key(scores[i]);
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
        count_digit<Wave>(view, s, lds);  // the second gather reads the only
                                          // slice's histogram again
      publish_counts<Wave>(view, s, gather, lds);
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
