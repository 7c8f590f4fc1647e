// SPDX-License-Identifier: Apache-2.0
#include "dumps/digest_list.h"

#include <fmt/format.h>

#include <stdexcept>

#include "dumps/mapped_file.h"

namespace exact_topk::dumps {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::string_view kGap = "  ";

}  // namespace

std::string format_digest_list(const DigestList& digests) {
  std::string text;
  for (const auto& [name, digest] : digests)
    text += fmt::format("{}{}{}\n", digest, kGap, name);
  return text;
}

DigestList read_digest_list(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string_view text = file.text();
  DigestList digests;
  for (int line = 1; !text.empty(); ++line) {
    const auto malformed = [&](std::string_view fault) {
      return std::runtime_error(
          fmt::format("{} line {} {}", path.string(), line, fault));
    };
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos)
      throw malformed("does not end with a newline");
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::string_view digest = row.substr(0, kDigits);
    if (!is_digest(digest) || row.substr(kDigits, kGap.size()) != kGap ||
        row.size() == kDigits + kGap.size()) {
      throw malformed("is not 64 hex digits, two spaces and a name");
    }
    const std::string_view name = row.substr(kDigits + kGap.size());
    if (!digests.empty() && name == digests.rbegin()->first)
      throw malformed(fmt::format("repeats {}", name));
    if (!digests.empty() && name < digests.rbegin()->first)
      throw malformed(fmt::format("is out of order: {}", name));
    digests.emplace_hint(digests.end(), name, digest);
  }
  return digests;
}

bool is_digest(std::string_view text) {
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace exact_topk::dumps
