// SPDX-License-Identifier: Apache-2.0
//
// A second reference, slow and independent, that the oracle is checked against
// on small sizes: long double, plain loops, and its own way to every format
// (values from ldexp, codes by search over all values), to every page byte and
// to the Hadamard transform (its matrix). It shares the geometry and nothing
// else with the rest of this room, and nothing but tests may use it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/geometry.h"

namespace exact_topk::oracle::plain {

long double bf16_value(std::uint16_t code);
long double e4m3_value(std::uint8_t code, Fp8 format);

// The nearest code, ties to the even one, saturating; NaN for NaN.
std::uint8_t e4m3_code(long double value, Fp8 format);

// The smallest scale that the geometry can express and that brings amax within
// the format's range, amax floored at 1e-4; no f32 rounding for kF32.
long double key_scale(long double amax, const Geometry& geometry);

// Rope at `position` with exact angles, then the Hadamard matrix over
// sqrt(128), unrounded.
std::vector<long double> rotate(std::span<const long double> head,
                                std::int64_t position,
                                const Geometry& geometry);

// LayerNorm of a raw key, then rotate.
std::vector<long double> key(std::span<const float> raw,
                             std::span<const float> gamma,
                             std::span<const float> beta, std::int64_t position,
                             const Geometry& geometry);

// Scores of one row, one long double loop a term.
std::vector<long double> scores(std::span<const std::uint16_t> query,
                                std::span<const float> weights,
                                std::span<const std::int32_t> page_table,
                                std::int64_t keys,
                                std::span<const std::uint8_t> cache,
                                const Geometry& geometry);

}  // namespace exact_topk::oracle::plain
