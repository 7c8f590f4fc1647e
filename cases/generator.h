// SPDX-License-Identifier: Apache-2.0
//
// generator.h - random numbers by counter: the same everywhere, in any order,
// in any range.
//
// A stream is Philox4x32-10 (Random123) with the seed as its key and the
// counter (block number, FNV-1a hash of the stream's name), each 64 bits, low
// word first. Element e of a tensor depends on the seed, the name and e alone,
// so ranks and threads can make any part of it.
//
// Normal values are sums of four uniforms (Irwin-Hall), of mean 0 and deviation
// 1, between -3.46 and 3.46. The sum is an integer and is multiplied by one
// constant: no function of libm, whose last bit may differ between machines,
// takes part.
//   - byte_sum: four bytes of one word, 1,021 values, for tensors rounded to
//   bf16 or FP8, which look it up in a table;
//   - fine_normal: four halves of two words, 262,141 values, for f32 tensors.
// The tails end early on purpose: 128 * 3.46 is below 448, so that no key code
// saturates.
#pragma once

#include <Random123/philox.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace exact_topk::cases {

using Words4 = std::array<uint32_t, 4>;

inline constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

class Stream {
 public:
  Stream(uint64_t seed, std::string_view name)
      : key_{{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}},
        hash_(fnv1a(name)) {}

  Words4 block(uint64_t index) const {
    const r123::Philox4x32::ctr_type counter{
        {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
         static_cast<uint32_t>(hash_), static_cast<uint32_t>(hash_ >> 32)}};
    const auto words = r123::Philox4x32{}(counter, key_);
    return {words[0], words[1], words[2], words[3]};
  }

  uint32_t word(uint64_t index) const { return block(index / 4)[index % 4]; }

  // A number in [0, bound).
  uint32_t below(uint64_t index, uint32_t bound) const {
    return static_cast<uint32_t>((uint64_t{word(index)} * bound) >> 32);
  }

 private:
  r123::Philox4x32::key_type key_;
  uint64_t hash_;
};

inline constexpr int kByteSums = 4 * 255 + 1;  // values of byte_sum

inline constexpr int byte_sum(uint32_t word) {
  const uint32_t pairs = (word & 0x00FF00FFu) + ((word >> 8) & 0x00FF00FFu);
  return static_cast<int>((pairs & 0xFFFFu) + (pairs >> 16));
}

// The normal value of a byte sum: (sum - mean) / deviation.
inline constexpr float byte_normal(int sum) {
  return static_cast<float>(sum - 510) * 0.006765875f;
}

// Two f32 normal values from a block; lane is 0 or 1.
inline float fine_normal(const Words4& words, int lane) {
  const uint32_t a = words[2 * lane], b = words[2 * lane + 1];
  const auto sum = static_cast<int32_t>((a & 0xFFFFu) + (a >> 16) +
                                        (b & 0xFFFFu) + (b >> 16));
  return static_cast<float>(sum - 131070) * 2.642898e-05f;
}

// out[e - begin] = make(block e / Lanes, e % Lanes) for e in [begin, end),
// where end - begin is out's size.
template <int Lanes, typename Value, typename Make>
void generate(const Stream& stream, int64_t begin, std::span<Value> out,
              Make make) {
  const int64_t end = begin + static_cast<int64_t>(out.size());
  Value* to = out.data();
  for (int64_t block = begin / Lanes; block * Lanes < end; ++block) {
    const Words4 words = stream.block(static_cast<uint64_t>(block));
    const int64_t start = block * Lanes;
    if (start >= begin &&
        start + Lanes <= end) {  // a whole block: a loop of known length, which
                                 // the compiler unrolls
      for (int lane = 0; lane < Lanes; ++lane) to[lane] = make(words, lane);
      to += Lanes;
      continue;
    }
    for (int lane = 0; lane < Lanes; ++lane)
      if (start + lane >= begin && start + lane < end)
        *to++ = make(words, lane);
  }
}

// A seeded permutation of 0 .. size - 1 (Fisher-Yates).
inline std::vector<int32_t> permutation(const Stream& stream, int32_t size) {
  std::vector<int32_t> order(static_cast<size_t>(size));
  for (int32_t i = 0; i < size; ++i) {
    const uint32_t j =
        stream.below(static_cast<uint64_t>(i), static_cast<uint32_t>(i) + 1);
    order[static_cast<size_t>(i)] = order[j];
    order[j] = i;
  }
  return order;
}

}  // namespace exact_topk::cases
