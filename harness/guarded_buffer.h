// SPDX-License-Identifier: Apache-2.0
//
// A host buffer that a candidate writes results to, with guard zones before and
// behind it; all of it is filled with a pattern first. Bytes that belong to no
// row's result must still hold the pattern afterwards.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/checks/untouched.h"

namespace exact_topk::harness {

template <typename T>
class GuardedBuffer {
 public:
  // `tensor` says which output it stands for.
  GuardedBuffer(int64_t elements, xtk_tensor tensor)
      : tensor_(tensor), all_(size_t(elements) + 2 * kGuard) {}

  void fill(const Filling& filling) {
    filling_ = filling;
    filled(filling, tensor_, 0, std::as_writable_bytes(std::span(all_)));
  }
  T* data() { return all_.data() + kGuard; }
  std::span<const T> row(int64_t begin, int64_t count) const {
    return std::span(all_).subspan(kGuard + size_t(begin), size_t(count));
  }
  // What those elements held before.
  std::vector<T> before(int64_t begin, int64_t count) const {
    std::vector<T> held(size_t(count), T{});
    filled(filling_, tensor_, (kGuard + uint64_t(begin)) * sizeof(T),
           std::as_writable_bytes(std::span(held)));
    return held;
  }
  // What is wrong outside the rows' results, which lie at `own` (elements,
  // ascending).
  std::string fault(std::span<const std::pair<int64_t, int64_t>> own) const {
    std::vector<Extent> extents;
    for (const auto& [begin, count] : own)
      extents.push_back({(kGuard + uint64_t(begin)) * sizeof(T),
                         uint64_t(count) * sizeof(T)});
    return outside_fault(std::as_bytes(std::span(all_)), extents, filling_,
                         tensor_);
  }

 private:
  static constexpr size_t kGuard = 256;  // elements on either side

  xtk_tensor tensor_;
  Filling filling_;
  std::vector<T> all_;
};

}  // namespace exact_topk::harness
