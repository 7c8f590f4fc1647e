// SPDX-License-Identifier: Apache-2.0
//
// text_file.h - the small text files that a user names: suites and geometries.
//
// Only a regular file is read, so that a FIFO or a device cannot hold a run up,
// and only one of a size that a person could have written.
#pragma once

#include <filesystem>
#include <string>

namespace exact_topk::cases {

// The file's whole text. std::invalid_argument with what is wrong alone ("it is
// no regular file"), for a sentence of the caller's that names the file.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace exact_topk::cases
