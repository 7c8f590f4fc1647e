// SPDX-License-Identifier: Apache-2.0
#pragma once

// The base arm's stage 6: rows of up to 32,768 keys select on one block each;
// longer rows on at most 16 slices of positions, by several kernels: each slice
// counts a digit of its own keys, one block a row adds the histograms and finds
// the digit, and, since they also say how many keys of each slice lie above the
// threshold and at it, every slice places its keys alone.

#include <cstdint>

#include "kernels/operands.h"
#include "kernels/stages/select_row.h"

namespace exact_topk::kernels::base {

inline constexpr int kOneBlockKeys = 32768;  // a longer row is sliced
inline constexpr int kSlices = 16;           // of a row, at most
inline constexpr int kSelectThreads = 512;   // of every block that selects

// How far the slices of a row are; written by the block that adds their
// histograms.
struct SlicedRow {
  Threshold threshold;  // known so far
  int above[kSlices];   // keys of each slice above the known bits
  int at[kSlices];      // keys of each slice that share them
};

struct SelectOperands {
  RowTables
      rows;  // n of each row; entries are slots where there is a page table
  int k;     // entries of a full row
  const float* scores;       // rows of scores
  const int64_t* row_start;  // [R], each row's first score; nullptr: row r
                             // starts at r * score_stride
  int64_t score_stride;      // entries from one row to the next
  const int32_t* indptr;     // [R], each row's first entry in the list
  int32_t* list;             // out
  unsigned* slice_bins;      // scratch, [R][kSlices][kBins]
  SlicedRow* sliced;         // scratch, [R]
  int32_t* candidates;       // scratch, [R][kRoom]
  SelectPath* paths;         // out, [R]

  __device__ RowKeys row_keys(int row) const {
    return {scores +
            (row_start == nullptr ? row * score_stride : row_start[row])};
  }
  __device__ Entries entries(int row) const {
    return {list + indptr[row], rows.table(row)};
  }
  __device__ unsigned* bins_of(int row, int slice) const {
    return slice_bins + (int64_t{row} * kSlices + slice) * kBins;
  }
  __device__ int32_t* candidates_of(int row) const {
    return candidates + int64_t{row} * kRoom;
  }
};

// The slices of a sliced row: equal runs of whole pages, the last one shorter,
// none empty.
struct Slices {
  int keys;    // n of the row
  int length;  // keys of a slice but the last

  __device__ explicit Slices(int n)
      : keys(n),
        length((n + kSlices * kPageKeys - 1) / (kSlices * kPageKeys) *
               kPageKeys) {}
  __device__ int count() const { return (keys + length - 1) / length; }
  __device__ int begin(int slice) const { return slice * length; }
  __device__ int end(int slice) const {
    return begin(slice) + length < keys ? begin(slice) + length : keys;
  }
};

// Grid: a block a row.
template <int Wave>
__global__ void select_short_rows(SelectOperands o) {
  HIP_DYNAMIC_SHARED(SelectLds, lds)
  const int row = static_cast<int>(blockIdx.x);
  const int n = o.rows.keys(row);
  if (n > kOneBlockKeys) return;
  SelectPath path{0, n > 0 ? 1 : 0, 0, 0, 1};
  if (n <= o.k) {
    list_all(n, o.entries(row));
  } else {
    path = select_row<Wave>(o.row_keys(row), n, o.k, o.entries(row), *lds);
  }
  if (threadIdx.x == 0) o.paths[row] = path;
}

// The threshold of a sliced row before digit `pass` is found.
__device__ inline Threshold known_before(const SelectOperands& o, int row,
                                         int n, int pass) {
  return pass == 0 ? Threshold{0, 0, o.k, n} : o.sliced[row].threshold;
}

// Grid: (kSlices, R). Writes the slice's histogram of digit `pass`.
template <int Wave>
__global__ void count_slices(SelectOperands o, int pass) {
  HIP_DYNAMIC_SHARED(RadixLds, lds)
  const int row = static_cast<int>(blockIdx.y);
  const int slice = static_cast<int>(blockIdx.x);
  const int n = o.rows.keys(row);
  const Slices slices(n);
  if (n <= kOneBlockKeys || slice >= slices.count()) return;
  const Threshold known = known_before(o, row, n, pass);
  if (known.stops()) return;
  clear_bins(kBins, *lds);
  add_digits<Wave>(
      o.row_keys(row), slices.begin(slice), slices.end(slice), known,
      known.digit_bits(), [](uint32_t) {}, *lds);
  __syncthreads();
  unsigned* bins = o.bins_of(row, slice);
  for (int b = static_cast<int>(threadIdx.x); b < kBins;
       b += static_cast<int>(blockDim.x))
    bins[b] = lds->bins[b];
}

// Grid: a block a row. Adds the slices' histograms of digit `pass` and finds
// it.
template <int Wave>
__global__ void add_slices(SelectOperands o, int pass) {
  HIP_DYNAMIC_SHARED(RadixLds, lds)
  const int row = static_cast<int>(blockIdx.x);
  const int n = o.rows.keys(row);
  if (n <= kOneBlockKeys) return;
  const Threshold known = known_before(o, row, n, pass);
  if (known.stops()) return;
  const int count = Slices(n).count();
  for (int b = static_cast<int>(threadIdx.x); b < kBins;
       b += static_cast<int>(blockDim.x)) {
    unsigned sum = 0;
    for (int s = 0; s < count; ++s) sum += o.bins_of(row, s)[b];
    lds->bins[b] = sum;
  }
  __syncthreads();
  const Threshold found = next_digit<Wave>(known, known.digit_bits(), *lds);
  const int digit = static_cast<int>(lds->digit);
  SlicedRow& state = o.sliced[row];
  for (int s = hip::wave<Wave>(); s < count; s += waves_of_block<Wave>()) {
    const unsigned* bins = o.bins_of(row, s);
    unsigned above = 0;
    for (int b = digit + 1 + hip::lane<Wave>(); b < kBins; b += Wave)
      above += bins[b];
    above = hip::wave_inclusive_scan<Wave>(above);
    if (hip::lane<Wave>() == Wave - 1) {
      state.above[s] =
          (pass == 0 ? 0 : state.above[s]) + static_cast<int>(above);
      state.at[s] = static_cast<int>(bins[digit]);
    }
  }
  if (threadIdx.x == 0) state.threshold = found;
}

// Grid: (kSlices, R). Places the slice's keys.
template <int Wave>
__global__ void place_slices(SelectOperands o) {
  HIP_DYNAMIC_SHARED(PlaceLds, lds)
  const int row = static_cast<int>(blockIdx.y);
  const int slice = static_cast<int>(blockIdx.x);
  const int n = o.rows.keys(row);
  const Slices slices(n);
  if (n <= kOneBlockKeys || slice >= slices.count()) return;
  const SlicedRow& state = o.sliced[row];
  Offsets offsets{0, 0};
  for (int s = 0; s < slice; ++s) {
    offsets.above += state.above[s];
    offsets.at += state.at[s];
  }
  place_run<Wave>(o.row_keys(row), slices.begin(slice), slices.end(slice), o.k,
                  state.threshold, offsets, o.entries(row),
                  o.candidates_of(row), *lds);
}

// LDS of the block that completes a sliced row.
struct ResolveLds {
  RadixLds radix;  // the search among candidates
  PlaceLds place;  // their placement
};

// Grid: a block a row. Completes the list from the candidates of all slices.
template <int Wave>
__global__ void resolve_slices(SelectOperands o) {
  HIP_DYNAMIC_SHARED(ResolveLds, lds)
  const int row = static_cast<int>(blockIdx.x);
  const int n = o.rows.keys(row);
  if (n <= kOneBlockKeys) return;
  const Threshold threshold = o.sliced[row].threshold;
  if (threshold.bits != kKeyBits)
    resolve<Wave>(CandidateKeys{o.row_keys(row).scores, o.candidates_of(row)},
                  o.k, threshold, o.entries(row), lds->radix, lds->place);
  if (threadIdx.x == 0) o.paths[row] = path_of(threshold, Slices(n).count());
}

}  // namespace exact_topk::kernels::base
