// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place in a kernel's source from which a barrier, a collective or a poll
// was called. Device functions take it as a last, defaulted argument.
// (std::source_location would do, but clang 14 cannot compile libstdc++'s.)

#include <string>

namespace exact_topk::hip::cpu {

struct Site {
  const char* file = "";  ///< the source file, as the compiler was given it
  int line = 0;           ///< its line, from 1

  /// The caller's place, when used as a default argument.
  static constexpr Site here(const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
    return {file, line};
  }

  /// Literals of one translation unit are shared, so pointers decide.
  friend constexpr bool operator==(const Site&, const Site&) = default;
};

/// `scan.h:41`, without the folders.
std::string to_string(const Site& site);

}  // namespace exact_topk::hip::cpu
