// SPDX-License-Identifier: Apache-2.0
#include "cases/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>

#include "cases/list_layout.h"
#include "oracle/formats.h"

namespace exact_topk::cases {
namespace {

using Row = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr int64_t kTailLengths = 8448;  // own length of families that do not
                                        // care: not a power of two, n > 4 * k

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

// [0, 1), exactly.
float uniform(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// Scores below 0.5, for the losers of a row whose winners are at least 1.
float loser(uint32_t word) { return uniform(word) * 1.5f - 1.0f; }

// Scores in [2, 3), above whatever else the row holds.
float winner(uint32_t word) { return 2.0f + uniform(word); }

float one(uint32_t) { return 1.0f; }
float zero(uint32_t) { return 0.0f; }
float minus_infinity(uint32_t) { return -kInfinity; }

// A quiet NaN with a random payload.
template <uint32_t Sign>
float nan(uint32_t word) {
  return from_bits(Sign | 0x7FC00000u | (word >> 10));
}

// Some scores of a row: how many, and each from a random word.
struct Part {
  int64_t count;
  float (*value)(uint32_t word);
};

// n scores of the parts one after another, as many as fit.
Row in_order(const Draw& draw, int64_t n, std::initializer_list<Part> parts) {
  Row row(static_cast<size_t>(n));
  int64_t at = 0;
  for (const Part& part : parts) {
    const int64_t count = std::min(part.count, n - at);
    generate<4>(draw.values, at,
                std::span(row).subspan(static_cast<size_t>(at),
                                       static_cast<size_t>(count)),
                [&](const Words4& words, int lane) {
                  return part.value(words[static_cast<size_t>(lane)]);
                });
    at += count;
  }
  return row;
}

// The same scores at random places.
Row scattered(const Draw& draw, int64_t n, std::initializer_list<Part> parts) {
  const Row ordered = in_order(draw, n, parts);
  const std::vector<int32_t> place =
      permutation(draw.places, static_cast<int32_t>(n));
  Row row(ordered.size());
  for (size_t i = 0; i < row.size(); ++i)
    row[static_cast<size_t>(place[i])] = ordered[i];
  return row;
}

template <typename Map>
Row mapped_normal(const Draw& draw, int64_t n, Map map) {
  Row row(static_cast<size_t>(n));
  generate<2>(draw.values, 0, std::span(row),
              [&](const Words4& words, int lane) {
                return map(fine_normal(words, lane));
              });
  return row;
}

Row random_row(const Draw& draw, int64_t n, int, int64_t) {
  return mapped_normal(draw, n, [](float x) { return x; });
}

// A normal row in which some elements at random places are replaced.
Row normal_with(const Draw& draw, int64_t n, int64_t count,
                float (*value)(uint32_t)) {
  Row row = random_row(draw, n, 0, 0);
  const std::vector<int32_t> place =
      permutation(draw.places, static_cast<int32_t>(n));
  for (int64_t i = 0; i < std::min(count, n); ++i)
    row[static_cast<size_t>(place[static_cast<size_t>(i)])] =
        value(draw.places.word(static_cast<uint64_t>(n + i)));
  return row;
}

Row winners(const Draw& draw, int64_t n, int, int64_t count) {
  return scattered(draw, n, {{count, winner}, {kAll, zero}});
}

// `offset` winners more than k.
Row winners_about_k(const Draw& draw, int64_t n, int k, int64_t offset) {
  return winners(draw, n, k, k + offset);
}

float in_coarse_bin(uint32_t word) { return 1.0f + 0.245f * uniform(word); }

Row coarse_bin(const Draw& draw, int64_t n, int, int64_t members) {
  return scattered(draw, n, {{members, in_coarse_bin}, {kAll, loser}});
}

Row coarse_bin_split(const Draw& draw, int64_t n, int, int64_t) {
  return scattered(draw, n,
                   {{889, winner}, {1536, in_coarse_bin}, {kAll, loser}});
}

float with_top_12(uint32_t word) {
  return from_bits(0x3F800000u | (word >> 12));
}
float with_top_24(uint32_t word) {
  return from_bits(0x3F8FFF00u | (word >> 24));
}
// The same top 12 bits as with_top_24, smaller in the next 12.
float below_top_24(uint32_t word) {
  return from_bits(0x3F800000u +
                   static_cast<uint32_t>((uint64_t{word} * 0xFFF00u) >> 32));
}

Row share_12(const Draw& draw, int64_t n, int k, int64_t members) {
  return scattered(draw, n,
                   {{k / 2, winner}, {members, with_top_12}, {kAll, loser}});
}

Row share_24(const Draw& draw, int64_t n, int k, int64_t members) {
  return scattered(draw, n,
                   {{k / 2, winner},
                    {members, with_top_24},
                    {1000, below_top_24},
                    {kAll, loser}});
}

// Only low mantissa bits differ.
Row low_bits_random(const Draw& draw, int64_t n, int, int64_t) {
  return in_order(draw, n, {{kAll, [](uint32_t word) {
                               return from_bits(0x3F900000u | (word >> 22));
                             }}});
}

Row low_bits_counting(const Draw&, int64_t n, int, int64_t first) {
  Row row;
  for (int64_t i = 0; i < n; ++i)
    row.push_back(from_bits(static_cast<uint32_t>(first + i)));
  return row;
}

Row fp16_midpoints(const Draw& draw, int64_t n, int, int64_t) {
  return scattered(draw, n,
                   {{2000, [](uint32_t) { return -0.5f; }},
                    {100, [](uint32_t) { return -1.18701171875f; }},
                    {kAll, [](uint32_t) { return -3.0f; }}});
}

// Random sign and mantissa, `binades` exponent fields from `lowest` on.
template <uint32_t Lowest, uint32_t Binades>
float log_uniform(uint32_t word) {
  const uint32_t exponent = Lowest + (word >> 23 & 0xFFu) % Binades;
  return from_bits((word & 0x807FFFFFu) | exponent << 23);
}

// 2^16 and more, up to the largest f32.
Row huge(const Draw& draw, int64_t n, int, int64_t) {
  return in_order(draw, n, {{kAll, log_uniform<127 + 16, 112>}});
}

// 2^-24 <= |score| < 2^-14
Row fp16_subnormal(const Draw& draw, int64_t n, int, int64_t) {
  return in_order(draw, n, {{kAll, log_uniform<127 - 24, 10>}});
}

Row f32_subnormal(const Draw& draw, int64_t n, int, int64_t) {
  return in_order(
      draw, n,
      {{kAll, [](uint32_t word) { return from_bits(word & 0x807FFFFFu); }}});
}

Row eight_values(const Draw& draw, int64_t n, int, int64_t) {
  return in_order(draw, n, {{kAll, [](uint32_t word) {
                               return static_cast<float>(word >> 29) * 0.5f -
                                      1.0f;
                             }}});
}

Row tiny_sigma(const Draw& draw, int64_t n, int, int64_t mean) {
  return mapped_normal(draw, n, [mean](float x) {
    return static_cast<float>(mean) + 0x1p-17f * x;
  });
}

Row bf16_rounded(const Draw& draw, int64_t n, int, int64_t) {
  return mapped_normal(draw, n, [](float x) {
    return oracle::bf16_to_f32(oracle::f32_to_bf16(x));
  });
}

Row relu(const Draw& draw, int64_t n, int, int64_t) {
  return mapped_normal(
      draw, n, [](float x) { return x - 1.28f > 0.0f ? x - 1.28f : 0.0f; });
}

Row nans(const Draw& draw, int64_t n, int, int64_t count) {
  return normal_with(draw, n, count, nan<0>);
}
Row negative_nans(const Draw& draw, int64_t n, int, int64_t count) {
  return normal_with(draw, n, count, nan<0x80000000u>);
}

Row nan_tail(const Draw& draw, int64_t n, int k, int64_t) {
  Row row = random_row(draw, n, k, 0);
  if (!row.empty()) row.back() = nan<0>(0);
  return row;
}

// k/2 numbers, the rest NaN of either sign.
Row few_numbers(const Draw& draw, int64_t n, int k, int64_t) {
  return scattered(draw, n, {{k / 2, winner}, {kAll, nan<0>}});
}
Row few_numbers_negative(const Draw& draw, int64_t n, int k, int64_t) {
  return scattered(draw, n, {{k / 2, winner}, {kAll, nan<0x80000000u>}});
}

Row plus_infinities(const Draw& draw, int64_t n, int, int64_t count) {
  return normal_with(draw, n, count, [](uint32_t) { return kInfinity; });
}

Row minus_infinities(const Draw& draw, int64_t n, int k, int64_t) {
  return scattered(draw, n, {{k / 2, winner}, {kAll, minus_infinity}});
}

float signed_zero(uint32_t word) { return from_bits(word & 0x80000000u); }

Row signed_zeros(const Draw& draw, int64_t n, int, int64_t) {
  return scattered(draw, n, {{100, winner}, {kAll, signed_zero}});
}

// Fewer positive numbers and +0 than k, so that the threshold is -0.
Row negative_zeros(const Draw& draw, int64_t n, int k, int64_t) {
  return scattered(
      draw, n,
      {{k / 4, winner}, {k / 4, zero}, {kAll, [](uint32_t) { return -0.0f; }}});
}

Row monotone(const Draw&, int64_t n, int, int64_t direction) {
  Row row;
  for (int64_t i = 0; i < n; ++i)
    row.push_back(static_cast<float>(direction * (i - n / 2)));
  return row;
}

// Equal scores, and last the next larger one: whoever looks at a part of the
// row takes it for a row of one value.
Row equal_but_last(const Draw&, int64_t n, int, int64_t) {
  Row row(static_cast<size_t>(n), 1.0f);
  if (n > 0) row.back() = std::nextafter(1.0f, 2.0f);
  return row;
}

// k winners side by side, from where the sixth of 16 slices begins.
Row one_slice(const Draw& draw, int64_t n, int k, int64_t) {
  return in_order(draw, n,
                  {{(n * 5 + 15) / 16, loser}, {k, winner}, {kAll, loser}});
}

// Winners in the last n % 4 elements alone, above a plateau.
Row last_vector(const Draw& draw, int64_t n, int, int64_t) {
  return in_order(draw, n, {{n - n % 4, one}, {kAll, winner}});
}

// A winner in each 64th of the row, above a plateau.
Row one_a_slice(const Draw& draw, int64_t n, int, int64_t) {
  Row row(static_cast<size_t>(n), 1.0f);
  for (int64_t s = 0; s < 64 && n >= 64; ++s) {
    const int64_t first = n * s / 64, last = n * (s + 1) / 64;
    const int64_t place =
        first + draw.places.below(static_cast<uint64_t>(s),
                                  static_cast<uint32_t>(last - first));
    row[static_cast<size_t>(place)] =
        winner(draw.values.word(static_cast<uint64_t>(s)));
  }
  return row;
}

std::vector<Family> make_families() {
  std::vector<Family> all;
  const auto add = [&](std::string name, std::string description,
                       int64_t min_keys, int64_t own_keys, int64_t parameter,
                       auto make) {
    all.push_back({std::move(name), std::move(description), min_keys, own_keys,
                   parameter, make});
  };
  add("random", "normal scores", 1, kTailLengths, 0, random_row);
  for (const int64_t count : {0, 1, 100})
    add(fmt::format("winners-{}", count),
        "strict winners above a plateau of zeros (sglang#30645)", 2049, 8320,
        count, winners);
  add("winners-k-1", "k-1 winners above a plateau of zeros (sglang#30645)",
      2049, 8320, -1, winners_about_k);
  add("winners-k", "k winners above a plateau of zeros (sglang#30645)", 2049,
      8320, 0, winners_about_k);
  add("winners-k+1", "k+1 winners above a plateau of zeros (sglang#30645)",
      2049, 8320, 1, winners_about_k);
  for (const int64_t members :
       {2048, 2049, 3708, 3709, 4096, 4097, 16384, 16385})
    add(fmt::format("coarse-bin-{}", members),
        "that many scores in one fp16 bin, [1.0, 1.245) (sglang#36807, #35257, "
        "#38144; vllm#51782)",
        members + 1, members + 4001, members, coarse_bin);
  add("coarse-bin-split",
      "889 scores above one fp16 bin and 1,536 in it (sglang#30512)", 2426,
      kTailLengths, 0, coarse_bin_split);
  for (const int64_t members : {4096, 4097})
    add(fmt::format("share-12-{}", members),
        "that many keys share the threshold's top 12 bits", members + 1024,
        9001, members, share_12);
  for (const int64_t members : {4096, 4097})
    add(fmt::format("share-24-{}", members),
        "that many keys share the threshold's top 24 bits", members + 2024,
        9001, members, share_24);
  add("low-bits-random", "bits 0x3F900000 | (r & 1023) (tilelang#1351)", 2049,
      kTailLengths, 0, low_bits_random);
  add("low-bits-one", "bits 0x3F800000 + i (tilelang#1351, flashinfer)", 2049,
      kTailLengths, 0x3F800000, low_bits_counting);
  add("low-bits-small", "bits 0x3805ED27 + i (tilelang#1351, flashinfer)", 2049,
      kTailLengths, 0x3805ED27, low_bits_counting);
  add("fp16-midpoints",
      "2,000 of -0.5, 100 of 0xBF97F000, the rest -3: a negative fp16 midpoint",
      2101, 4097, 0, fp16_midpoints);
  add("huge", "|score| above 65,504, beyond fp16", 1, kTailLengths, 0, huge);
  add("fp16-subnormal", "|score| in [2^-24, 2^-14): subnormal in fp16", 1,
      kTailLengths, 0, fp16_subnormal);
  add("f32-subnormal", "subnormal f32 scores of both signs", 1, kTailLengths, 0,
      f32_subnormal);
  add("eight-values", "8 distinct values", 2049, kTailLengths, 0, eight_values);
  add("tiny-sigma", "8 + 2^-17 * normal", 2049, kTailLengths, 8, tiny_sigma);
  add("tiny-sigma-negative", "-8 + 2^-17 * normal", 2049, kTailLengths, -8,
      tiny_sigma);
  add("bf16-rounded",
      "normal scores rounded to bf16: 47 to 180 ties at the threshold", 2049,
      kTailLengths, 0, bf16_rounded);
  add("relu",
      "relu(normal - 1.28): a plateau of zeros over nine tenths of the row "
      "(sglang#31115)",
      2049, kTailLengths, 0, relu);
  for (const int64_t count : {1, 3, 4096})
    add(fmt::format("nan-{}", count),
        "that many +NaN in a normal row (vllm#50201, sglang#37970)",
        std::max<int64_t>(count, 1), kTailLengths, count, nans);
  add("nan-tail", "+NaN in the last element (cudnn-frontend#446)", 1,
      kTailLengths + 3, 0, nan_tail);
  add("nan-negative", "4,096 -NaN in a normal row (raft#2801)", 4096,
      kTailLengths, 4096, negative_nans);
  add("few-numbers", "k/2 numbers, the rest +NaN (sglang#37970)", 2049,
      kTailLengths, 0, few_numbers);
  add("few-numbers-negative", "k/2 numbers, the rest -NaN (sglang#37970)", 2049,
      kTailLengths, 0, few_numbers_negative);
  add("plus-infinities", "2,100 of +inf (raft#2801)", 2100, kTailLengths, 2100,
      plus_infinities);
  add("minus-infinities",
      "k/2 numbers, the rest -inf: the threshold is -inf (raft#2801)", 2049,
      kTailLengths, 0, minus_infinities);
  add("signed-zeros",
      "100 winners, the rest zeros of both signs: the threshold is +0", 8192,
      kTailLengths, 0, signed_zeros);
  add("negative-zeros",
      "fewer than k at +0 and above: the threshold is -0 (SGLang topk v2)",
      2049, kTailLengths, 0, negative_zeros);
  add("rising", "strictly rising scores (b12x#55)", 2049, kTailLengths + 1, 1,
      monotone);
  add("falling", "strictly falling scores (b12x#55)", 2049, kTailLengths + 1,
      -1, monotone);
  add("equal-but-last", "one value, and last the next larger one", 2049,
      kTailLengths, 0, equal_but_last);
  add("one-slice", "all winners side by side", 32769, 65541, 0, one_slice);
  add("last-vector", "winners in the last partial vector of four alone", 2052,
      kTailLengths + 3, 0, last_vector);
  add("one-a-slice", "one winner in each 64th of the row", 32769, 65541, 0,
      one_a_slice);
  return all;
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> all = make_families();
  return all;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& entry : families()) names.push_back(entry.name);
  return names;
}

const Family& family(std::string_view name) {
  for (const Family& entry : families())
    if (entry.name == name) return entry;
  throw std::invalid_argument(fmt::format("no family is named '{}'", name));
}

std::vector<int32_t> select_lengths(const Case& c) {
  const int64_t n = c.pos + 1;
  const int k = c.geometry.k;
  const int64_t all[] = {n, n - 1, n - n / 4, k + 1, k, k - 1, 1, 0};
  std::vector<int32_t> lengths;
  for (int r = 0; r < c.rows; ++r)
    lengths.push_back(static_cast<int32_t>(std::min(all[r], n)));
  return lengths;
}

SelectRows select_rows(const Case& c, uint64_t seed) {
  const std::string root = input_name(c);
  const Family& source = family(c.family);
  const float bait[] = {kInfinity, 3e38f, nan<0>(0)};
  SelectRows result;
  result.lengths = select_lengths(c);
  const auto put_bait = [&] {
    result.scores.push_back(bait[result.scores.size() % std::size(bait)]);
  };
  for (size_t r = 0; r < result.lengths.size(); ++r) {
    const size_t residue = (r + 1 + static_cast<size_t>(c.rows)) % 4;
    for (int i = 0; i < 4 || result.scores.size() % 4 != residue; ++i)
      put_bait();
    result.row_start.push_back(static_cast<int64_t>(result.scores.size()));
    const Draw draw{Stream(seed, fmt::format("{}/row{}/values", root, r)),
                    Stream(seed, fmt::format("{}/row{}/places", root, r))};
    const std::vector<float> row =
        source.make(draw, result.lengths[r], c.geometry.k, source.parameter);
    result.scores.insert(result.scores.end(), row.begin(), row.end());
  }
  for (int i = 0; i < 8; ++i) put_bait();
  ListLayout layout =
      list_layout(Stream(seed, root + "/indptr"), c.rows, c.geometry.k);
  result.indptr = std::move(layout.indptr);
  result.list_entries = layout.entries;
  return result;
}

}  // namespace exact_topk::cases
