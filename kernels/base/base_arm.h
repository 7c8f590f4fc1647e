// SPDX-License-Identifier: Apache-2.0
#pragma once

// The base arm as its host side sees it: four parts, each a few kernels in a
// stream. A part returns the first error of its launches and does not start the
// kernels after it.

#include <cstdint>

#include "kernels/base/selection.h"
#include "kernels/operands.h"

namespace exact_topk::kernels::base {

// How kernels are launched.
struct Grid {
  int wave;            // lanes a wave, 64 or 32
  int blocks;          // of a stage whose tasks any number of blocks may share
  hipStream_t stream;  // in order
};

// Stages 1 and 2: hidden states to mailbox, raw key and head weights.
hipError_t launch_front(const FrontOperands& operands, const Grid& grid);
// Stages 3 and 4: index queries and keys; the keys are in the cache when it
// ends.
hipError_t launch_keys_and_queries(const FrontOperands& operands,
                                   const Grid& grid);
// Stage 5.
hipError_t launch_scores(const ScoreOperands& operands, const Grid& grid);
// Stage 6. No row has more than `largest_keys` keys.
hipError_t launch_selection(const SelectOperands& operands,
                            int64_t largest_keys, const Grid& grid);

}  // namespace exact_topk::kernels::base
