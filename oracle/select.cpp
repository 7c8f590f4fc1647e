// SPDX-License-Identifier: Apache-2.0
#include "oracle/select.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

namespace exact_topk::oracle {
namespace {

void require_k(int k) {
  if (k < 1)
    throw std::invalid_argument("k is " + std::to_string(k) +
                                ", but at least one key is selected");
}

// Where the wanted-th largest of some keys lies among the bins of a histogram.
struct Digit {
  std::uint32_t value = 0;  // the bin
  std::int64_t above = 0;   // keys in higher bins
  std::int64_t inside = 0;  // keys in the bin
};

Digit find_digit(std::span<const std::int64_t> histogram, std::int64_t wanted) {
  std::int64_t above = 0;
  std::size_t bin = histogram.size() - 1;
  while (above + histogram[bin] < wanted) above += histogram[bin--];
  return {static_cast<std::uint32_t>(bin), above, histogram[bin]};
}

// The digit of the wanted-th largest key at `shift`, `width` bits wide.
Digit digit_of(std::span<const std::uint32_t> keys, int shift, int width,
               std::int64_t wanted) {
  std::vector<std::int64_t> histogram(std::size_t{1} << width, 0);
  const std::uint32_t mask = (1u << width) - 1;
  for (const std::uint32_t key : keys) ++histogram[(key >> shift) & mask];
  return find_digit(histogram, wanted);
}

// The keys that have `digit` at `shift`; all of them agree above it.
std::vector<std::uint32_t> narrow(std::span<const std::uint32_t> keys,
                                  int shift, int width, Digit digit) {
  std::vector<std::uint32_t> kept;
  kept.reserve(static_cast<std::size_t>(digit.inside));
  const std::uint32_t mask = (1u << width) - 1;
  for (const std::uint32_t key : keys)
    if (((key >> shift) & mask) == digit.value) kept.push_back(key);
  return kept;
}

BaseOrder identity(std::span<const std::uint32_t> keys) {
  BaseOrder order;
  order.positions.resize(keys.size());
  std::iota(order.positions.begin(), order.positions.end(), 0);
  if (keys.empty()) return order;
  order.threshold = std::ranges::min(keys);
  order.ties = std::ranges::count(keys, order.threshold);
  return order;
}

std::vector<std::uint32_t> radix_keys(std::span<const float> scores) {
  std::vector<std::uint32_t> keys(scores.size());
  std::ranges::transform(scores, keys.begin(), radix_key);
  return keys;
}

}  // namespace

BaseOrder base_order(std::span<const float> scores, int k) {
  require_k(k);
  const std::vector<std::uint32_t> keys = radix_keys(scores);
  if (keys.size() <= static_cast<std::size_t>(k)) return identity(keys);

  const Digit top = digit_of(keys, 20, 12, k);
  const std::vector<std::uint32_t> share12 = narrow(keys, 20, 12, top);
  const std::int64_t above12 = top.above;
  const Digit middle = digit_of(share12, 8, 12, k - above12);
  const std::vector<std::uint32_t> share24 = narrow(share12, 8, 12, middle);
  const std::int64_t above24 = above12 + middle.above;
  const Digit low = digit_of(share24, 0, 8, k - above24);
  const std::int64_t above32 = above24 + low.above;

  BaseOrder order;
  order.threshold = top.value << 20 | middle.value << 8 | low.value;
  order.ties = low.inside;
  const bool stop12 = top.inside <= kCandidateRoom;
  const bool stop24 = middle.inside <= kCandidateRoom;
  order.bits = stop12 ? 12 : stop24 ? 24 : 32;

  // The list's three parts begin one after another; each fills by position.
  const std::uint32_t t = order.threshold;
  const int shift = 32 - order.bits;
  const std::size_t end = static_cast<std::size_t>(k);
  std::size_t prefix_above = 0;
  std::size_t above = static_cast<std::size_t>(stop12   ? above12
                                               : stop24 ? above24
                                                        : above32);
  std::size_t equal = static_cast<std::size_t>(above32);
  order.positions.resize(end);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t key = keys[i];
    if (key < t) continue;
    if (key == t) {
      if (equal < end) order.positions[equal++] = static_cast<std::int32_t>(i);
    } else if (key >> shift > t >> shift) {
      order.positions[prefix_above++] = static_cast<std::int32_t>(i);
    } else {
      order.positions[above++] = static_cast<std::int32_t>(i);
    }
  }
  return order;
}

std::vector<std::int32_t> exact_top_k(std::span<const float> scores, int k) {
  return exact_top_k(radix_keys(scores), k);
}

std::vector<std::int32_t> exact_top_k(std::span<const std::uint32_t> keys,
                                      int k) {
  require_k(k);
  // Greater is better: the key, then the lower position.
  std::vector<std::uint64_t> ranks(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    ranks[i] = std::uint64_t{keys[i]} << 32 |
               static_cast<std::uint32_t>(~static_cast<std::uint32_t>(i));
  if (ranks.size() > static_cast<std::size_t>(k)) {
    std::nth_element(ranks.begin(), ranks.begin() + (k - 1), ranks.end(),
                     std::greater<>());
    ranks.resize(static_cast<std::size_t>(k));
  }
  std::vector<std::int32_t> positions(ranks.size());
  std::ranges::transform(ranks, positions.begin(), [](std::uint64_t rank) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
  });
  std::ranges::sort(positions);
  return positions;
}

}  // namespace exact_topk::oracle
