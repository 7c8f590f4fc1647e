// SPDX-License-Identifier: Apache-2.0
#pragma once

// A launch for tests, inputs and all, and its judgement by the oracle: every
// published tensor of every live row against the stage before it, and every
// byte that the launch must leave alone.
//
// Requests have pages of their own in a shuffled order; memory that belongs to
// nobody holds NaN; tables are wider than needed and their tails name other
// requests' pages.

#include <cstdint>
#include <random>
#include <vector>

#include "tests/kernels/opened.h"

namespace exact_topk::tests {

// One row of a launch. A pad row has request -1 and position -1.
struct RowPlan {
  int request;       // 0 ..
  int64_t position;  // the row sees keys 0 .. position
};

struct ScenarioPlan {
  xtk_geometry geometry = small_geometry();  // of the model
  int kind = XTK_KIND_INDEX;                 // where hidden states come from
  int partials = 2;                          // T for kind index
  int layer = 1;                             // of two
  int wave = 64;                             // lanes a wave
  const char* schedule = nullptr;            // of the simulated device
  const char* arm = "base";                  // which way it is computed
  int blocks = 0;                            // of a cooperative launch
  std::vector<RowPlan> rows;                 // R of them
  uint64_t seed = 1;                         // of all inputs
};

class Scenario {
 public:
  explicit Scenario(const ScenarioPlan& plan);

  const Opened& candidate() const { return candidate_; }
  // Fills the outputs with a pattern, poisons the rows' own slots and launches.
  // Another `attempt`, another pattern.
  void launch(int attempt = 0);
  // Adds test failures for everything that the launch got wrong.
  void judge() const;

 private:
  struct Inputs {
    std::vector<uint16_t> embedding, q_a, wq_b, wk;            // bf16
    std::vector<float> input_gamma, q_gamma, k_gamma, k_beta;  // f32
    std::vector<float> weights_proj, rope_cos, rope_sin, residual, partials;
    std::vector<uint8_t> cache;  // as it is before the launch
    std::vector<int32_t> tokens, requests, positions, slots, page_table, indptr;
  };

  // Rows that the candidate holds, one more than the launch has where that is
  // allowed.
  size_t held_rows() const { return static_cast<size_t>(options_.max_rows); }
  bool live(size_t row) const { return keys(row) > 0; }
  int64_t keys(size_t row) const {
    return row < plan_.rows.size() ? plan_.rows[row].position + 1 : 0;
  }
  void make_inputs();
  void judge_front() const;
  void judge_keys_and_queries() const;
  void judge_scores() const;
  void judge_list() const;
  void judge_inputs() const;

  ScenarioPlan plan_;         // what to launch
  xtk_open_options options_;  // how the candidate was opened
  Inputs in_;                 // everything that the launch reads
  Opened candidate_;          // under test
  std::vector<std::vector<uint8_t>>
      before_;  // by output tensor from XTK_X on: its bytes before the launch
};

}  // namespace exact_topk::tests
