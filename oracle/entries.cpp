// SPDX-License-Identifier: Apache-2.0
#include "oracle/entries.h"

#include <algorithm>
#include <utility>

#include "oracle/pages.h"

namespace exact_topk::oracle {

std::vector<std::int32_t> positions_of_entries(
    std::span<const std::int64_t> entries, std::int64_t keys) {
  std::vector<std::int32_t> positions(entries.size());
  std::ranges::transform(
      entries, positions.begin(), [keys](std::int64_t entry) {
        return entry == -1                  ? std::int32_t{-1}
               : entry >= 0 && entry < keys ? static_cast<std::int32_t>(entry)
                                            : kNoKey;
      });
  return positions;
}

std::vector<std::int32_t> positions_of_slots(
    std::span<const std::int64_t> entries, std::span<const std::int32_t> pages,
    std::int64_t keys) {
  // Pages with their place in the table, sorted, to be searched by page.
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  places.reserve(pages.size());
  for (const std::int32_t page : pages)
    places.emplace_back(page, static_cast<std::int64_t>(places.size()));
  std::ranges::sort(places);

  std::vector<std::int64_t> positions(entries.size());
  std::ranges::transform(
      entries, positions.begin(), [&](std::int64_t entry) -> std::int64_t {
        if (entry < 0) return entry;
        const std::pair<std::int64_t, std::int64_t> sought(entry / kPageTokens,
                                                           0);
        const auto place = std::ranges::lower_bound(places, sought);
        if (place == places.end() || place->first != sought.first)
          return kNoKey;
        return place->second * kPageTokens + entry % kPageTokens;
      });
  return positions_of_entries(positions, keys);
}

std::optional<PageFault> page_fault(std::span<const std::int32_t> pages,
                                    std::int64_t cache_pages) {
  for (const std::int32_t page : pages)
    if (page < 0 || page >= cache_pages) return PageFault{page, false};
  std::vector<std::int32_t> sorted(pages.begin(), pages.end());
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return PageFault{*twice, true};
  return std::nullopt;
}

}  // namespace exact_topk::oracle
