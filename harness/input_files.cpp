// SPDX-License-Identifier: Apache-2.0
#include "harness/input_files.h"

#include "cases/geometry_file.h"
#include "cases/options.h"
#include "cases/suite.h"
#include "harness/loader.h"
#include "harness/settings.h"

namespace exact_topk::harness {

std::vector<std::filesystem::path> input_files(
    const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  const auto add = [&](const auto& more) {
    files.insert(files.end(), more.begin(), more.end());
  };
  add(cases::values_of(arguments, "--capture"));
  for (const std::string& suite : cases::values_of(arguments, "--suite"))
    add(cases::suite_files(suite));
  for (const std::string& geometry : cases::values_of(arguments, "--geometry"))
    if (cases::names_geometry_file(geometry)) files.emplace_back(geometry);
  std::vector<std::string> candidates =
      cases::values_of(arguments, "--candidate");
  if (candidates.empty()) candidates.push_back(Settings().candidate);
  for (const std::string& candidate : candidates)
    add(candidate_files(candidate));
  return files;
}

}  // namespace exact_topk::harness
