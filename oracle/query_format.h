// SPDX-License-Identifier: Apache-2.0
//
// The formats that somebody's index query may be kept in (SPEC section 10).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace exact_topk::oracle {

enum class QueryFormat { kBf16, kF32, kF16, kE4m3fn };

// Bytes of one element.
std::size_t query_bytes(QueryFormat format);

// The query as it is multiplied, exact in f64: [H * 128] elements at any
// alignment, and for e4m3fn a scale a head, [H]; no scale is 1.
std::vector<double> decode_query(std::span<const std::byte> bytes,
                                 QueryFormat format,
                                 std::span<const float> scales = {});

}  // namespace exact_topk::oracle
