// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search for the k-th largest key of a row by radix digits, from the top: a
// histogram of one digit among the keys that share the bits known so far, then
// the digit in which the k-th falls.

#include <cstdint>

#include "kernels/stages/block.h"
#include "kernels/stages/formats.h"

namespace exact_topk::kernels {

inline constexpr int kRoom = 4096;  // candidate room: the search may stop once
                                    // no more keys share T's known bits
inline constexpr int kDigitBits =
    12;  // of the first two digits; the third has the other 8
inline constexpr int kBins = 1 << kDigitBits;
inline constexpr int kKeyBits = 32;
inline constexpr int kPasses = 3;  // digits of a key

// Unsigned order of these is the order of scores: -0 below +0, +NaN above +inf,
// -NaN lowest.
__device__ inline uint32_t radix_key(float score) {
  const uint32_t bits = float_bits(score);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Keys in position order: those of a row's scores ...
struct RowKeys {
  const float* scores;  // the row's, from position 0

  __device__ int position(int i) const { return i; }
  __device__ uint32_t key(int i) const { return radix_key(scores[i]); }
};

// ... or those of some positions of the row.
struct CandidateKeys {
  const float* scores;       // the row's, from position 0
  const int32_t* positions;  // ascending

  __device__ int position(int i) const { return positions[i]; }
  __device__ uint32_t key(int i) const {
    return radix_key(scores[positions[i]]);
  }
};

// What is known of T, the radix key of the k-th entry.
struct Threshold {
  uint32_t prefix;  // its top `bits`, the others 0
  int bits;         // how many are known: 0, 12, 24 or 32
  int wanted;   // entries that the list takes from the keys which share them
  int sharing;  // keys which share them

  __device__ int digit_bits() const {
    return bits < 2 * kDigitBits ? kDigitBits : kKeyBits - 2 * kDigitBits;
  }
  __device__ bool shared_by(uint32_t key) const {
    return bits == 0 || (key ^ prefix) >> (kKeyBits - bits) == 0;
  }
  // Whether the list's order is settled by these bits: the candidates fit their
  // room, or nothing is left to tell keys apart.
  __device__ bool stops() const {
    return bits != 0 && (sharing <= kRoom || bits == kKeyBits);
  }
};

// LDS of a search.
struct RadixLds {
  unsigned bins[kBins];            // histogram of a digit
  unsigned totals[kLargestWaves];  // sums of the waves' bins
  unsigned digit;                  // found: the digit of T
  unsigned above;                  // found: keys whose digit is larger
};

__device__ inline void clear_bins(RadixLds& lds) {
  for (int b = static_cast<int>(threadIdx.x); b < kBins;
       b += static_cast<int>(blockDim.x))
    lds.bins[b] = 0;
  __syncthreads();
}

// Adds the next digit of keys [begin, end) that share the known bits; the bins
// are complete after a barrier.
template <class Keys>
__device__ inline void add_digits(const Keys keys, int begin, int end,
                                  const Threshold known, RadixLds& lds) {
  const int threads = static_cast<int>(blockDim.x);
  const int shift = kKeyBits - known.bits - known.digit_bits();
  const uint32_t mask = (1u << known.digit_bits()) - 1;
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += threads) {
    const uint32_t key = keys.key(i);
    if (known.shared_by(key)) atomicAdd(&lds.bins[key >> shift & mask], 1u);
  }
}

// The threshold with one digit more, from complete bins. Each thread owns
// neighbouring bins, the first thread the largest.
template <int Wave>
__device__ inline Threshold next_digit(const Threshold& known, RadixLds& lds) {
  const int own = kBins / static_cast<int>(blockDim.x);
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * own;
  unsigned sum = 0;
  for (int b = top; b > top - own; --b) sum += lds.bins[b];
  const unsigned wanted = static_cast<unsigned>(known.wanted);
  unsigned above = block_scan<Wave>(sum, lds.totals).before;
  if (above < wanted && wanted <= above + sum) {
    int b = top;
    while (above + lds.bins[b] < wanted) above += lds.bins[b--];
    lds.digit = static_cast<unsigned>(b);
    lds.above = above;
  }
  __syncthreads();
  const int bits = known.bits + known.digit_bits();
  return {known.prefix | lds.digit << (kKeyBits - bits), bits,
          known.wanted - static_cast<int>(lds.above),
          static_cast<int>(lds.bins[lds.digit])};
}

// Searches digit after digit among [0, count) until `done(threshold)`.
template <int Wave, class Keys, class Done>
__device__ inline Threshold search(const Keys& keys, int count, Threshold known,
                                   const Done& done, RadixLds& lds) {
  while (!done(known)) {
    clear_bins(lds);
    add_digits(keys, 0, count, known, lds);
    __syncthreads();
    known = next_digit<Wave>(known, lds);
    __syncthreads();
  }
  return known;
}

}  // namespace exact_topk::kernels
