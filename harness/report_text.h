// SPDX-License-Identifier: Apache-2.0
//
// The report that people read, line by line greppable: the configuration first,
// a `run` line before each case, one line a result, the counts by check, and
// last the verdict, which is also the mark of a run that came to its end.
#pragma once

#include <string>

#include "harness/report.h"
#include "harness/settings.h"

namespace exact_topk::harness {

std::string text_configuration(const Report& report, const Settings& settings,
                               int64_t cases, int groups);
std::string text_run(const std::string& repro);
// The result of a case; what is wrong with it stands below, indented.
std::string text_result(const CaseResult& result);
// Failures again, in listed order, the counts by check and the verdict.
std::string text_summary(const Report& report);

}  // namespace exact_topk::harness
