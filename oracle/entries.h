// SPDX-License-Identifier: Apache-2.0
//
// The entries of somebody's list as positions of the row, and the page tables
// that lie between the two.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace exact_topk::oracle {

// What an entry becomes that names no key of the row and is not -1.
inline constexpr std::int32_t kNoKey = -2;

// Entries that are positions already, of a row of `keys` keys.
std::vector<std::int32_t> positions_of_entries(
    std::span<const std::int64_t> entries, std::int64_t keys);

// Entries that are slots. `pages` are the ceil(keys / 64) pages of the row,
// without faults.
std::vector<std::int32_t> positions_of_slots(
    std::span<const std::int64_t> entries, std::span<const std::int32_t> pages,
    std::int64_t keys);

// What is wrong with the pages of a row.
struct PageFault {
  std::int32_t page;  // the page
  bool twice;         // it is named twice; else it lies outside the cache
};

// Nothing where each page is one of 0 .. cache_pages - 1 and no other's. A page
// outside goes before one named twice.
std::optional<PageFault> page_fault(std::span<const std::int32_t> pages,
                                    std::int64_t cache_pages);

}  // namespace exact_topk::oracle
