// SPDX-License-Identifier: Apache-2.0
//
// run.json of a digest tree: what two runs must share to be compared (seed,
// geometry), and what a reader wants to know besides.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases/case.h"
#include "harness/options.h"
#include "harness/report.h"

namespace exact_topk::harness {

// Of the tree that `arm` fills.
nlohmann::json run_identity(const Options& options, const Report& report,
                            const std::vector<cases::Case>& cases,
                            const std::string& arm);

}  // namespace exact_topk::harness
