// SPDX-License-Identifier: Apache-2.0
#include "harness/select_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/expand.h"
#include "cases/suite.h"
#include "harness/failure.h"

namespace exact_topk::harness {
namespace {

// SPEC section 7: the largest T that divides the number of ranks.
int default_tp(int ranks) {
  for (const int tp : {8, 4, 2})
    if (ranks % tp == 0) return tp;
  return 1;
}

std::vector<cases::Case> listed(const Options& options, int ranks) {
  try {
    if (!options.suite.empty())
      return cases::read_suite(options.suite, options.selected.tp,
                               default_tp(ranks));
    return cases::expand(options.selected, default_tp(ranks));
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

std::vector<cases::Case> select_cases(const Options& options, int ranks) {
  std::vector<cases::Case> all = listed(options, ranks);
  if (!options.start_at.empty()) {
    const auto first =
        std::find_if(all.begin(), all.end(), [&](const cases::Case& c) {
          return cases::name(c) == options.start_at;
        });
    if (first == all.end())
      throw UsageError(
          fmt::format("--start-at {} is none of the {} cases listed",
                      options.start_at, all.size()));
    all.erase(all.begin(), first);
  }
  const size_t before = all.size();
  if (!options.filter.empty())
    std::erase_if(all, [&](const cases::Case& c) {
      return !cases::matches(options.filter, cases::name(c));
    });
  if (all.empty())
    throw UsageError(before == 0
                         ? fmt::format("--suite {} has no cases", options.suite)
                         : fmt::format("--filter {} matches none of {} cases",
                                       options.filter, before));
  for (const cases::Case& c : all)
    if (ranks >= c.tp && ranks % c.tp != 0)
      throw UsageError(fmt::format(
          "--tp {} does not divide the {} ranks of this run", c.tp, ranks));
  return all;
}

}  // namespace exact_topk::harness
