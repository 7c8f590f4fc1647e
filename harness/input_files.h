// SPDX-License-Identifier: Apache-2.0
//
// The files that a run reads, so that none of its reports replaces one. They
// are found in the words of the command line, which may not parse: the report
// of that error must spare them too.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace exact_topk::harness {

// Suite (with what it includes), geometries, candidate and capture.
std::vector<std::filesystem::path> input_files(
    const std::vector<std::string>& arguments);

}  // namespace exact_topk::harness
