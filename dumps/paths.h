// SPDX-License-Identifier: Apache-2.0
//
// What two paths have to do with each other, whatever they are called: symbolic
// links are followed, ".." after one leads where the kernel goes, and what does
// not exist yet counts too. Nothing here throws for a path that cannot be
// looked at; it is then compared as it is written.
#pragma once

#include <filesystem>

namespace exact_topk::dumps {

// The absolute path without links, "." or "..".
std::filesystem::path resolved(const std::filesystem::path& path);

// Whether both lead to one file, by name or by inode.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Whether `file` lies in `folder`, at any depth, or is the folder.
bool lies_in(const std::filesystem::path& file,
             const std::filesystem::path& folder);

}  // namespace exact_topk::dumps
