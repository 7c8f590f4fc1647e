// SPDX-License-Identifier: Apache-2.0
#include "harness/report.h"

#include <array>
#include <cmath>

#include "harness/status.h"

namespace exact_topk::harness {
namespace {

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

Counts count(const Report& report) {
  Counts n;
  n.cases = static_cast<int64_t>(report.cases.size());
  for (const CaseResult& c : report.cases) {
    n.failed += c.verdict == Outcome::kFailed;
    n.skipped += c.verdict == Outcome::kSkipped;
    n.mistrusted += c.verdict == Outcome::kMistrusted;
    n.untested += c.verdict == Outcome::kUntested;
    for (const CheckResult& check : c.checks) {
      n.checks += check.run;
      n.untested += check.outcome == Outcome::kUntested;
    }
    n.max_score_error = larger(c.max_score_error, n.max_score_error);
    n.max_bound_ratio = larger(c.max_bound_ratio, n.max_bound_ratio);
    n.missed += c.missed;
    n.order_errors += c.order_errors;
    n.controls_run += c.controls_run;
    n.controls_caught += c.controls_caught;
    add(n.paths, c.paths);
  }
  return n;
}

int status(const Report& report) {
  if (!report.error.empty()) return kErrorStatus;
  const Counts n = count(report);
  return n.failed > 0 || (n.mistrusted > 0 && !report.allow_mistrusted)
             ? kFailedStatus
             : kPassedStatus;
}

std::string_view verdict(const Report& report) {
  return std::array<std::string_view, 3>{
      "passed", "failed", "error"}[static_cast<size_t>(status(report))];
}

}  // namespace exact_topk::harness
