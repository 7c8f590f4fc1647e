// SPDX-License-Identifier: Apache-2.0
//
// caches.h - what the keys already in the cache look like: SPEC section 5,
// "Caches".
//
// A cache is a function from a slot to a key and its scale. It depends on the
// slot, not on the request, because requests may share pages. A new cache is a
// function and an entry of the table in caches.cpp.
//
// Normal codes are scaled to the format: 128 * normal stays below e4m3fn's 448;
// e4m3fnuz, whose largest value is 240, takes half of that everywhere. With
// `--fill integers` every code is an integer of magnitude at most 4 and every
// scale a power of two.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "cases/case.h"
#include "cases/generator.h"
#include "oracle/geometry.h"
#include "oracle/stages.h"

namespace exact_topk::cases {

using CodeTable = std::array<uint8_t, kByteSums>;  // FP8 code of a byte sum

// Makes the pieces of keys for one case and layer.
class KeyMaker {
 public:
  KeyMaker(const Case& c, uint64_t seed, int launch);

  // The normal key number `index`.
  std::array<uint8_t, oracle::kHeadDim> wide_key(int64_t index) const;

  // The key that all tokens of `narrow` start from: dims 0..95 wide, 96..127
  // fine.
  std::array<uint8_t, oracle::kHeadDim> narrow_key() const;

  // Moves three seeded elements of dims 96..127 by one step of the format (by
  // one with integers), up or down.
  void move_three(std::array<uint8_t, oracle::kHeadDim>& key,
                  int64_t slot) const;

  // 2^-9 .. 2^-5: odd exponents at even slots and even ones at odd slots, so
  // that neighbours differ. Format f32 has a random mantissa.
  float scale(int64_t slot) const;

  // Four scales, all different.
  float tie_scale(int64_t index) const;

  // The scale of a key of zeros.
  float zero_scale() const;

 private:
  uint8_t stepped(uint8_t code, bool up) const;

  oracle::Geometry geometry_;
  bool integers_;
  Stream codes_, scales_, moves_;
  CodeTable wide_, fine_;
};

struct Cache {
  std::string_view name;         // in --cache and in case names
  std::string_view description;  // one line
  // The key at a slot; `recent`: the slot is among the last 4,096 cached keys
  // of some row at step 0.
  oracle::CachedKey (*key)(const KeyMaker& make, int64_t slot, bool recent);
};

std::span<const Cache> caches();

// Throws std::invalid_argument for an unknown name.
const Cache& cache(std::string_view name);

}  // namespace exact_topk::cases
