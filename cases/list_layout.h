// SPDX-License-Identifier: Apache-2.0
//
// list_layout.h - where each row's entries lie in the list buffer.
//
// Every row has room for k entries; 13 guard entries stand before, between and
// after, so that offsets take every residue mod 4 and a write past either end
// is seen. The order is seeded and, for two rows and more, never row order.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/generator.h"

namespace exact_topk::cases {

inline constexpr int kGuardEntries = 13;

struct ListLayout {
  std::vector<int32_t> indptr;  // [rows]: offset of each row's entries
  int64_t entries = 0;          // of the buffer
};

ListLayout list_layout(const Stream& stream, int rows, int k);

}  // namespace exact_topk::cases
