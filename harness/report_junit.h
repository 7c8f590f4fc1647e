// SPDX-License-Identifier: Apache-2.0
//
// The JUnit XML report: one test case a case, for the CI systems that read it.
// MISTRUSTED is a failure unless it was allowed; an error of the run is a test
// case of its own.
#pragma once

#include <string>

#include "harness/report.h"

namespace exact_topk::harness {

std::string report_junit(const Report& report);

}  // namespace exact_topk::harness
