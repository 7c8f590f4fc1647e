// SPDX-License-Identifier: Apache-2.0
#include "cases/list_layout.h"

#include <algorithm>

namespace exact_topk::cases {

ListLayout list_layout(const Stream& stream, int rows, int k) {
  std::vector<int32_t> place = permutation(
      stream, rows);  // place[r]: which of the buffer's parts is row r's
  if (std::is_sorted(place.begin(), place.end()))
    std::reverse(place.begin(), place.end());
  ListLayout layout;
  for (const int32_t p : place)
    layout.indptr.push_back(kGuardEntries + p * (k + kGuardEntries));
  layout.entries = kGuardEntries + int64_t{rows} * (k + kGuardEntries);
  return layout;
}

}  // namespace exact_topk::cases
