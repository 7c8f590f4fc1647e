// SPDX-License-Identifier: Apache-2.0
//
// What a launch publishes: where each row's results lie in the output tensors,
// and views of them after a launch. The bytes outside live rows' results may
// not be written (checks/untouched.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/plan.h"
#include "harness/open_candidate.h"

namespace exact_topk::harness {

inline constexpr xtk_tensor kOutputs[] = {
    XTK_X, XTK_Q_LORA,      XTK_MAILBOX, XTK_RAW_KEY,
    XTK_W, XTK_INDEX_QUERY, XTK_SCORES,  XTK_LIST};

// "x", "q_lora" ...: names of output tensors, and of the checks of them.
const char* output_name(xtk_tensor tensor);
bool published(const Description& description, xtk_tensor tensor);

// Bytes within a tensor.
struct Extent {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

// Sizes and extents of the output tensors of a case.
class OutputLayout {
 public:
  OutputLayout(const cases::Case& item, const cases::Plan& plan);
  uint64_t bytes(xtk_tensor tensor) const;
  int element_bytes(xtk_tensor tensor) const;
  // What a live row's results take.
  Extent row(xtk_tensor tensor, const cases::Step& step, int row) const;

 private:
  uint64_t row_bytes(xtk_tensor tensor) const;

  const cases::Case& item_;
  const cases::Plan& plan_;
};

// Views of everything that a launch left, valid until the next launch. Where
// the candidate's memory cannot be read in place, it is read into buffers that
// are kept from launch to launch.
class LaunchOutputs {
 public:
  LaunchOutputs(const OutputLayout& layout, const cases::Plan& plan)
      : layout_(layout), plan_(plan) {}

  void look(Candidate& candidate, const Description& description, int layer);

  bool has(xtk_tensor tensor) const { return !views_[size_t(tensor)].empty(); }
  std::span<const std::byte> bytes(xtk_tensor tensor) const {
    return views_[size_t(tensor)];
  }
  // One row's results.
  template <typename T>
  std::span<const T> row(xtk_tensor tensor, const cases::Step& step,
                         int row) const {
    const Extent at = layout_.row(tensor, step, row);
    return {reinterpret_cast<const T*>(bytes(tensor).data() + at.begin),
            at.bytes / sizeof(T)};
  }
  // The launched layer's cache.
  std::span<const uint8_t> cache() const {
    return {reinterpret_cast<const uint8_t*>(cache_.data()), cache_.size()};
  }

 private:
  const OutputLayout& layout_;
  const cases::Plan& plan_;
  std::array<std::span<const std::byte>, XTK_TENSOR_COUNT> views_;
  std::array<std::vector<std::byte>, XTK_TENSOR_COUNT> storage_;
  std::span<const std::byte> cache_;
};

}  // namespace exact_topk::harness
