// SPDX-License-Identifier: Apache-2.0
//
// suite.h - suites: text files with a command line of case options a line.
//
//     # the text after a # is a comment
//     include quick.suite                  beside this file
//     --kind index,dense --pos 8447 --cache 'random'
//
// Words are separated by blanks; single or double quotes keep blanks and #
// together. An empty line is nothing; a geometry file is looked up from the
// working directory, as on a command line. Every error begins with `FILE:LINE:
// `.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cases/case.h"

namespace exact_topk::cases {

// The cases of a suite in the order of its lines, each once. `tp` overrides the
// --tp of every line; `default_tp` is for lines without one. Throws
// std::invalid_argument.
std::vector<Case> read_suite(const std::string& path, std::optional<int> tp,
                             int default_tp);

// Every file that reading the suite would read, as far as it can be read: the
// suite, those that it includes, and the geometries that they name.
std::vector<std::filesystem::path> suite_files(const std::string& path);

}  // namespace exact_topk::cases
