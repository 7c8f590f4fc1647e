// SPDX-License-Identifier: Apache-2.0
//
// Lists that are derived from the f64 reference alone, for kernels that keep no
// scores: the list that the reference would give, and a list against it.
//
// The reference's own list is the base order of its values, each rounded once
// to f32. Another list may differ from it and be right: a kernel's scores may
// be off by b = bound * the row's largest |reference|. With T the k-th largest
// reference, the kernel's k-th score lies within T - b .. T + b, so that a key
// it selects has a reference of at least T - 2b, and one it leaves out of at
// most T + 2b. What lies beyond is wrong whatever the kernel's scores were.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/contract.h"
#include "oracle/scores.h"
#include "oracle/select.h"

namespace exact_topk::oracle {

// The values, each rounded once.
std::vector<float> rounded(std::span<const double> reference);

// k >= 1.
BaseOrder reference_order(std::span<const double> reference, int k);

struct ReferenceVerdict {
  std::vector<std::int32_t> top_k;  // of the reference, ascending
  ListVerdict exact;  // against the reference's own list, ties and all
  std::int64_t missed_beyond = 0;         // missed keys above T + 2b
  std::int64_t extra_beyond = 0;          // listed keys below T - 2b
  std::int64_t first_extra_beyond = -1;   // index of the first of them
  std::int32_t first_missed_beyond = -1;  // position of the lowest
  double threshold = 0.0;                 // T
  double margin = 0.0;                    // 2b
};

ReferenceVerdict judge_against_reference(
    std::span<const std::int32_t> positions, const RowScores& reference, int k,
    double bound);

}  // namespace exact_topk::oracle
