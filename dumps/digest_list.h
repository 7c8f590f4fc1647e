// SPDX-License-Identifier: Apache-2.0
//
// The text of a rank0000.sha256 file: 64 hex digits, two spaces, a name, a
// newline, sorted by the bytes of the names.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace exact_topk::dumps {

// Leaf name to digest; iterates in the order of the file.
using DigestList = std::map<std::string, std::string, std::less<>>;

std::string format_digest_list(const DigestList& digests);

// std::runtime_error naming file and line where a line is malformed, comes
// twice or is out of order.
DigestList read_digest_list(const std::filesystem::path& path);

// Whether the text is 64 lower-case hex digits.
bool is_digest(std::string_view text);

}  // namespace exact_topk::dumps
