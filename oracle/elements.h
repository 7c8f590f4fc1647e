// SPDX-License-Identifier: Apache-2.0
//
// Little-endian elements out of bytes that may lie at any address, as tensors
// of other programs do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace exact_topk::oracle {

template <typename T>
std::vector<T> elements(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// The same, each through `convert`.
template <typename To, typename From, typename Convert>
std::vector<To> converted(std::span<const std::byte> bytes, Convert convert) {
  const std::vector<From> from = elements<From>(bytes);
  std::vector<To> out(from.size());
  std::transform(from.begin(), from.end(), out.begin(), convert);
  return out;
}

}  // namespace exact_topk::oracle
