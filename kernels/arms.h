// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arms that our candidates offer, the default first: the two whole ones,
// and each change from base to head on its own, so that its gain can be
// measured.
//
//   base           separate kernels; one row scored at a time; at most 16
//   slices head           one launch: rows scored together, up to 64 slices
//   base+grouped   base, but the rows of a group score together
//   base+slices    base, but rows select on up to 64 slices

#include <string_view>

namespace exact_topk::kernels {

inline constexpr const char* kArms[] = {"base", "head", "base+grouped",
                                        "base+slices", nullptr};

inline bool has_arm(std::string_view name) {
  for (const char* const* arm = kArms; *arm != nullptr; ++arm)
    if (name == *arm) return true;
  return false;
}

}  // namespace exact_topk::kernels
