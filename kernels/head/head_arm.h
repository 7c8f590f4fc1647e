// SPDX-License-Identifier: Apache-2.0
#pragma once

// The head arm as its host side sees it: one cooperative launch of persistent
// blocks for any set of parts (SPEC section 4).

#include <cstddef>

#include "kernels/base/base_arm.h"
#include "kernels/head/operands.h"

namespace exact_topk::kernels::head {

// Pages of a batch and LDS of a block for this geometry, within the LDS that a
// block may have.
struct LdsPlan {
  int batch_pages;  // 1..kBatchPages
  size_t bytes;     // of a block
};
LdsPlan plan_lds(const Geometry& geometry, int rows, size_t lds_limit);

// 64-bit words of each hand-off area for the largest shapes, and of all of
// them.
struct HandOffSizes {
  size_t x, q_down, q_lora, mailbox, raw_key, w, query, key, run_done, gather,
      extreme, candidate;
  size_t words() const;
};
HandOffSizes hand_off_sizes(const Geometry& geometry, int rows);

// The areas of one allocation of `sizes.words()` words.
HandOff hand_off(uint64_t* words, const HandOffSizes& sizes);

// A launch of as many blocks and threads that do nothing: the floor of any.
hipError_t launch_empty(const base::Grid& grid);

hipError_t launch(const Operands& operands, const base::Grid& grid,
                  size_t lds_bytes);

}  // namespace exact_topk::kernels::head
