// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search for the k-th largest key of a row by radix digits, from the top: a
// histogram of one digit among the keys that share the bits known so far, then
// the digit in which the k-th falls.

#include <cstdint>

#include "kernels/hip/count.h"
#include "kernels/hip/unroll.h"
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
inline constexpr int kCandidateDigitBits =
    10;  // of the two digits that 12 bits leave open; 24 leave one of 8
inline constexpr int kLaneKeys = 4;  // neighbouring keys that a lane takes

// Unsigned order of these is the order of scores: -0 below +0, +NaN above +inf,
// -NaN lowest.
__device__ inline uint32_t radix_key(float score) {
  const uint32_t bits = float_bits(score);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Keys in position order: those of a row's scores ...
struct RowKeys {
  const float* scores;  // the row's, from position 0

  __device__ uint32_t key(int i) const { return radix_key(scores[i]); }
  __device__ uint4 four(int i) const {
    return {key(i), key(i + 1), key(i + 2), key(i + 3)};
  }
};

// ... or those of some positions of the row.
struct CandidateKeys {
  const float* scores;       // the row's, from position 0
  const int32_t* positions;  // ascending

  __device__ uint32_t key(int i) const {
    return radix_key(scores[positions[i]]);
  }
  __device__ uint4 four(int i) const {
    return {key(i), key(i + 1), key(i + 2), key(i + 3)};
  }
};

// A lane's keys: neighbours from i on, fewer than kLaneKeys only before `end`.
// i is a multiple of kLaneKeys away from the first key that is looked at.
struct LaneKeys {
  uint32_t key[kLaneKeys];  // by position
  int count;                // that there are

  template <class Keys>
  __device__ LaneKeys(const Keys& keys, int i, int end)
      : key{0, 0, 0, 0}, count(end - i < kLaneKeys ? end - i : kLaneKeys) {
    if (count == kLaneKeys) {
      const uint4 four = keys.four(i);
      key[0] = four.x;
      key[1] = four.y;
      key[2] = four.z;
      key[3] = four.w;
      return;
    }
    EXACT_TOPK_UNROLL
    for (int e = 0; e < kLaneKeys; ++e)
      if (e < count) key[e] = keys.key(i + e);
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

__device__ inline void clear_bins(int bins, RadixLds& lds) {
  for (int b = static_cast<int>(threadIdx.x); b < bins;
       b += static_cast<int>(blockDim.x))
    lds.bins[b] = 0;
  __syncthreads();
}

// Adds the next `digit_bits` bits of keys [begin, end) that share the known
// ones; the bins are complete after a barrier. Calls seen(key) for each of
// them.
template <int Wave, class Keys, class Seen>
__device__ inline void add_digits(const Keys& keys, int begin, int end,
                                  const Threshold known, int digit_bits,
                                  const Seen& seen, RadixLds& lds) {
  const int step = static_cast<int>(blockDim.x) * kLaneKeys;
  const int shift = kKeyBits - known.bits - digit_bits;
  const uint32_t mask = (1u << digit_bits) - 1;
  for (int start = begin + hip::wave<Wave>() * Wave * kLaneKeys; start < end;
       start += step) {
    const LaneKeys mine(keys, start + hip::lane<Wave>() * kLaneKeys, end);
    hip::LaneBins bins{{0, 0, 0, 0}, 0};
    EXACT_TOPK_UNROLL
    for (int e = 0; e < kLaneKeys; ++e) {
      if (e >= mine.count || !known.shared_by(mine.key[e])) continue;
      seen(mine.key[e]);
      bins.bin[e] = mine.key[e] >> shift & mask;
      bins.counts |= 1u << e;
    }
    hip::count<Wave>(lds.bins, bins);
  }
}

// The threshold with one digit more, from complete bins. Each thread owns
// neighbouring bins, the first thread the largest.
template <int Wave>
__device__ inline Threshold next_digit(const Threshold& known, int digit_bits,
                                       RadixLds& lds) {
  const int bins = 1 << digit_bits;
  const int threads = static_cast<int>(blockDim.x);
  const int own = (bins + threads - 1) / threads;
  const int top = bins - 1 - static_cast<int>(threadIdx.x) * own;
  unsigned sum = 0;
  for (int b = top; b > top - own && b >= 0; --b) sum += lds.bins[b];
  const unsigned wanted = static_cast<unsigned>(known.wanted);
  unsigned above = block_scan<Wave>(sum, lds.totals).before;
  if (above < wanted && wanted <= above + sum) {
    int b = top;
    while (above + lds.bins[b] < wanted) above += lds.bins[b--];
    lds.digit = static_cast<unsigned>(b);
    lds.above = above;
  }
  __syncthreads();
  const int bits = known.bits + digit_bits;
  return {known.prefix | lds.digit << (kKeyBits - bits), bits,
          known.wanted - static_cast<int>(lds.above),
          static_cast<int>(lds.bins[lds.digit])};
}

// Searches digit after digit among [0, count), digit_bits(threshold) of them at
// a time, until `done(threshold)`.
template <int Wave, class Keys, class DigitBits, class Done>
__device__ inline Threshold search(const Keys& keys, int count, Threshold known,
                                   const DigitBits& digit_bits,
                                   const Done& done, RadixLds& lds) {
  while (!done(known)) {
    const int bits = digit_bits(known);
    clear_bins(1 << bits, lds);
    add_digits<Wave>(
        keys, 0, count, known, bits, [](uint32_t) {}, lds);
    __syncthreads();
    known = next_digit<Wave>(known, bits, lds);
    __syncthreads();
  }
  return known;
}

// T among the candidates of a search that stopped early.
template <int Wave, class Keys>
__device__ inline Threshold search_candidates(const Keys& keys,
                                              const Threshold& stopped,
                                              RadixLds& lds) {
  const auto digit_bits = [](const Threshold& t) {
    const int open = kKeyBits - t.bits;
    return open < kCandidateDigitBits ? open : kCandidateDigitBits;
  };
  const auto exact = [](const Threshold& t) { return t.bits == kKeyBits; };
  return search<Wave>(keys, stopped.sharing, stopped, digit_bits, exact, lds);
}

}  // namespace exact_topk::kernels
