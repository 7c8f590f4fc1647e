// SPDX-License-Identifier: Apache-2.0
//
// The JSON report, schema exact-topk/report/1 (SPEC section 7). A number that
// is not finite is null; "tp" is a list where a suite mixes T; "error" stands
// only in a report with that verdict.
#pragma once

#include <string>

#include "harness/report.h"

namespace exact_topk::harness {

std::string report_json(const Report& report);

}  // namespace exact_topk::harness
