// SPDX-License-Identifier: Apache-2.0
#include "dumps/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>

namespace exact_topk::dumps {

std::string sentence_of(const std::exception& error) {
  if (const auto* file =
          dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: {}", file->path1().string(),
                       file->code().message());
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "there is not enough memory";
  std::string text = error.what();
  while (text.ends_with('\n')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace exact_topk::dumps
