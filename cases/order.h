// SPDX-License-Identifier: Apache-2.0
//
// order.h - which kind each launch of a case is.
//
// Usually all are the case's kind. `--order model` runs the indexer launches of
// a GLM-5.3 model in their order instead: 21 of its 78 layers run the indexer,
// layer 0 on the embedding, layers 1 and 2 behind a dense layer, and layers 6,
// 10, .. 74 behind a mixture of experts. Each launch has weights and a cache of
// its own. Hidden states are not carried from launch to launch: all launches of
// a step read the same residual, partial sums and tokens, a dense one the first
// partial sum alone.
#pragma once

#include "cases/case.h"

namespace exact_topk::cases {

inline constexpr const char* kModelOrder = "model";
inline constexpr int kModelLaunches = 21;  // layers that run the indexer
inline constexpr int kModelDenseEnd = 3;   // launches before the first MoE one

inline bool model_order(const Case& c) { return c.order == kModelOrder; }

inline Kind kind_of(const Case& c, int launch) {
  if (!model_order(c)) return c.kind;
  if (launch == 0) return Kind::kEmbed;
  return launch < kModelDenseEnd ? Kind::kDense : Kind::kIndex;
}

inline bool has_kind(const Case& c, Kind kind) {
  for (int launch = 0; launch < c.launches; ++launch)
    if (kind_of(c, launch) == kind) return true;
  return false;
}

// Launches of a case of this order where none are asked for.
inline int default_launches(const Case& c) {
  return model_order(c) ? kModelLaunches : kDefaultLaunches;
}

}  // namespace exact_topk::cases
