// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arms that our candidates offer, the default first.

#include <string_view>

namespace exact_topk::kernels {

inline constexpr const char* kArms[] = {"base", nullptr};

inline bool has_arm(std::string_view name) {
  for (const char* const* arm = kArms; *arm != nullptr; ++arm)
    if (name == *arm) return true;
  return false;
}

}  // namespace exact_topk::kernels
