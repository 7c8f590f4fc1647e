// SPDX-License-Identifier: Apache-2.0
#include "cases/caches.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "oracle/formats.h"

namespace exact_topk::cases {
namespace {

using oracle::CachedKey;
using oracle::kHeadDim;

constexpr int kFineDims =
    32;  // the last dims, in which the keys of `narrow` differ

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(127 + exponent) << 23);
}

// FP8 codes of amplitude * normal, halved for e4m3fnuz; with integers those of
// round(1.15 * normal), -4 .. 4.
CodeTable codes(float amplitude, bool integers, oracle::Fp8 format) {
  CodeTable table{};
  const float scaled =
      format == oracle::Fp8::kE4m3fnuz ? amplitude / 2 : amplitude;
  for (int sum = 0; sum < kByteSums; ++sum) {
    const float normal = byte_normal(sum);
    const float value =
        integers ? std::nearbyintf(1.15f * normal) : scaled * normal;
    // + 0.0f turns -0 into +0
    table[static_cast<size_t>(sum)] = oracle::f32_to_e4m3(value + 0.0f, format);
  }
  return table;
}

CachedKey random_key(const KeyMaker& make, int64_t slot, bool) {
  return {make.wide_key(slot), make.scale(slot)};
}

CachedKey ties_key(const KeyMaker& make, int64_t slot, bool) {
  return {make.wide_key(slot % 4), make.tie_scale(slot % 4)};
}

CachedKey zeros_key(const KeyMaker& make, int64_t, bool) {
  return {{}, make.zero_scale()};
}

CachedKey recent_key(const KeyMaker& make, int64_t slot, bool recent) {
  CachedKey key = random_key(make, slot, recent);
  if (recent) key.scale *= 8;
  return key;
}

CachedKey narrow_key(const KeyMaker& make, int64_t slot, bool) {
  CachedKey key{make.narrow_key(), power_of_two(-7)};
  make.move_three(key.bytes, slot);
  return key;
}

constexpr Cache kCaches[] = {
    {"random", "codes of 128 * normal, a scale a token", random_key},
    {"ties", "four keys with four scales, period four", ties_key},
    {"zeros", "all-zero keys", zeros_key},
    {"recent", "random, the last 4,096 cached keys of a row 8 times as large",
     recent_key},
    {"narrow", "one key, three of its elements moved by one step in each token",
     narrow_key},
};

}  // namespace

KeyMaker::KeyMaker(const Case& c, uint64_t seed, int launch)
    : geometry_(c.geometry),
      integers_(c.integers()),
      codes_(seed,
             fmt::format("{}/launch{}/cache/codes", input_name(c), launch)),
      scales_(seed,
              fmt::format("{}/launch{}/cache/scales", input_name(c), launch)),
      moves_(seed,
             fmt::format("{}/launch{}/cache/moves", input_name(c), launch)),
      wide_(codes(128.0f, c.integers(), c.geometry.fp8)),
      fine_(codes(8.0f, c.integers(), c.geometry.fp8)) {}

std::array<uint8_t, kHeadDim> KeyMaker::wide_key(int64_t index) const {
  std::array<uint8_t, kHeadDim> key;
  generate<4>(codes_, index * kHeadDim, std::span<uint8_t>(key),
              [&](const Words4& words, int lane) {
                return wide_[static_cast<size_t>(
                    byte_sum(words[static_cast<size_t>(lane)]))];
              });
  return key;
}

std::array<uint8_t, kHeadDim> KeyMaker::narrow_key() const {
  std::array<uint8_t, kHeadDim> key = wide_key(0);
  generate<4>(codes_, kHeadDim - kFineDims,
              std::span<uint8_t>(key).last(kFineDims),
              [&](const Words4& words, int lane) {
                return fine_[static_cast<size_t>(
                    byte_sum(words[static_cast<size_t>(lane)]))];
              });
  return key;
}

uint8_t KeyMaker::stepped(uint8_t code, bool up) const {
  if (integers_)
    return oracle::f32_to_e4m3(
        oracle::e4m3_to_f32(code, geometry_.fp8) + (up ? 1.0f : -1.0f),
        geometry_.fp8);
  // Codes of one sign are in the order of their values. No code here is near
  // NaN: 8 * normal ends at 27.7.
  const int rank = (code & 0x80) != 0 ? -(code & 0x7F) : code;
  const int moved = up ? rank + 1 : rank - 1;
  return static_cast<uint8_t>(moved < 0 ? 0x80 | -moved : moved);
}

void KeyMaker::move_three(std::array<uint8_t, kHeadDim>& key,
                          int64_t slot) const {
  const Words4 words = moves_.block(static_cast<uint64_t>(slot));
  // Three different dims: the second is drawn from 31 that are left, the third
  // from 30.
  const auto draw = [&](size_t i, uint32_t bound) {
    return static_cast<int>((uint64_t{words[i]} * bound) >> 32);
  };
  const int first = draw(0, kFineDims);
  int second = draw(1, kFineDims - 1);
  if (second >= first) ++second;
  int third = draw(2, kFineDims - 2);
  if (third >= std::min(first, second)) ++third;
  if (third >= std::max(first, second)) ++third;
  uint32_t ups = words[3];
  for (const int dim : {first, second, third}) {
    uint8_t& code = key[static_cast<size_t>(kHeadDim - kFineDims + dim)];
    code = stepped(code, (ups & 1u) != 0);
    ups >>= 1;
  }
}

float KeyMaker::scale(int64_t slot) const {
  const Words4 words = scales_.block(static_cast<uint64_t>(slot));
  const bool odd = slot % 2 != 0;
  const auto choice =
      static_cast<int>((uint64_t{words[0]} * (odd ? 2u : 3u)) >> 32);
  const int exponent = (odd ? -8 : -9) + 2 * choice;
  if (geometry_.scale == oracle::Scale::kUe8m0 || integers_ || exponent == -5)
    return power_of_two(exponent);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(power_of_two(exponent)) |
                              (words[1] >> 9));
}

float KeyMaker::tie_scale(int64_t index) const {
  const auto turn = static_cast<int64_t>(scales_.below(0, 5));
  return power_of_two(static_cast<int>(-9 + (index + turn) % 5));
}

float KeyMaker::zero_scale() const {
  return integers_ ? power_of_two(-7)
                   : oracle::key_scale(1e-4f, geometry_.scale, geometry_.fp8);
}

std::span<const Cache> caches() { return kCaches; }

const Cache& cache(std::string_view name) {
  for (const Cache& entry : kCaches)
    if (entry.name == name) return entry;
  throw std::invalid_argument(fmt::format("no cache is named '{}'", name));
}

}  // namespace exact_topk::cases
