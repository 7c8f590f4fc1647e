// SPDX-License-Identifier: Apache-2.0
#pragma once

// An open candidate for tests: calls throw std::runtime_error with the
// candidate's sentence, tensors travel as vectors.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/candidate.h"

namespace exact_topk::tests {

// A small geometry with every switch at its default.
inline xtk_geometry small_geometry() {
  return {.struct_size = sizeof(xtk_geometry),
          .hidden = 256,
          .q_lora = 128,
          .heads = 8,
          .head_dim = 128,
          .rope_dims = 64,
          .page_tokens = 64,
          .k = 2048,
          .rope = XTK_ROPE_INTERLEAVED,
          .hadamard = 1,
          .scale = XTK_SCALE_UE8M0,
          .fp8 = XTK_FP8_E4M3FN,
          .page_layout = XTK_PAGE_PLAIN,
          .layer_norm_eps = 1e-6f,
          .rms_eps = 1e-5f};
}

// Options under which a launch of the small geometry is possible.
inline xtk_open_options small_options() {
  return {.struct_size = sizeof(xtk_open_options),
          .device = 0,
          .geometry = small_geometry(),
          .max_rows = 8,
          .max_partials = 4,
          .layers = 2,
          .pages = 10,
          .table_width = 8,
          .vocabulary = 16,
          .max_keys = 512,
          .score_stride = 520,
          .rope_positions = 512,
          .list_entries = 4200,
          .wave_size = 0,
          .blocks = 0,
          .schedule = nullptr,
          .seed = 1};
}

class Opened {
 public:
  explicit Opened(const xtk_open_options& options) {
    xtk_candidate* candidate = nullptr;
    if (xtk_open(&options, &candidate) != XTK_OK)
      throw std::runtime_error(xtk_last_error(nullptr));
    candidate_.reset(candidate);
  }
  xtk_candidate* get() const { return candidate_.get(); }
  void check(xtk_status status) const {
    if (status != XTK_OK) throw std::runtime_error(xtk_last_error(get()));
  }
  template <class T>
  void write(xtk_tensor tensor, int layer, const std::vector<T>& values,
             uint64_t first = 0) const {
    check(xtk_write(get(), tensor, layer, first * sizeof(T),
                    values.size() * sizeof(T), values.data()));
  }
  // The first `count` elements.
  template <class T>
  std::vector<T> read(xtk_tensor tensor, int layer, uint64_t count) const {
    std::vector<T> values(count);
    check(xtk_read(get(), tensor, layer, 0, count * sizeof(T), values.data()));
    return values;
  }
  // All of it.
  template <class T>
  std::vector<T> read(xtk_tensor tensor, int layer = 0) const {
    return read<T>(tensor, layer, xtk_tensor_bytes(get(), tensor) / sizeof(T));
  }
  xtk_witness_row witness(int row) const {
    xtk_witness_row witness{};
    witness.struct_size = sizeof(witness);
    check(xtk_witness(get(), row, &witness));
    return witness;
  }

 private:
  struct Close {
    void operator()(xtk_candidate* candidate) const { xtk_close(candidate); }
  };
  std::unique_ptr<xtk_candidate, Close> candidate_;  // closed with this
};

}  // namespace exact_topk::tests
