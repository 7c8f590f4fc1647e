// SPDX-License-Identifier: Apache-2.0
//
// The formats that somebody's scores may be kept in, and what rounding to them
// costs: half an ulp, which SPEC section 10 allows on top of the bound.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace exact_topk::oracle {

enum class ScoreFormat { kF32, kF16, kBf16 };

// Bytes of one score.
std::size_t score_bytes(ScoreFormat format);

// Little-endian scores at any alignment as f32, which holds each of them.
std::vector<float> decode_scores(std::span<const std::byte> bytes,
                                 ScoreFormat format);

// The most that a score which is kept as `value` can have moved when it was
// rounded to the format; 0 for f32, where scores are computed.
double half_ulp(float value, ScoreFormat format);

}  // namespace exact_topk::oracle
