// SPDX-License-Identifier: Apache-2.0
#include "dumps/paths.h"

#include <algorithm>
#include <system_error>

namespace exact_topk::dumps {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (error) return path;
  fs::path canonical = fs::weakly_canonical(absolute, error);
  if (error) canonical = absolute.lexically_normal();
  // "a/" and "a" are one place.
  return canonical.has_filename() ? canonical : canonical.parent_path();
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  return resolved(a) == resolved(b);
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  const fs::path inner = resolved(file), outer = resolved(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end())
             .first == outer.end();
}

}  // namespace exact_topk::dumps
