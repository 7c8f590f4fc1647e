// SPDX-License-Identifier: Apache-2.0
//
// The first element in which two tensors of one dtype and shape differ, as
// people want to read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dumps/npy.h"

namespace exact_topk::dumps {

struct ElementDifference {
  std::vector<std::int64_t> index;  // one number a dimension
  std::string hex_a, hex_b;         // bits, all digits of the dtype: 0x3f800000
  std::string decimal_a, decimal_b;  // digits enough to tell any two apart
  // Steps between the values in the order of their radix keys (-0.0 and +0.0
  // are one step apart, as in the selection); floating-point dtypes only.
  std::optional<std::uint64_t> ulps;
};

// Nothing where the bytes are equal. Both spans hold tensor_bytes(dtype, shape)
// bytes, at any alignment.
std::optional<ElementDifference> first_difference(
    Dtype dtype, std::span<const std::int64_t> shape,
    std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace exact_topk::dumps
