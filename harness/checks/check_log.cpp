// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/check_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace exact_topk::harness {

std::string to_string(const Where& where) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    text += (text.empty() ? "" : " ") + part;
  };
  if (!where.arm.empty()) add(fmt::format("arm {}", where.arm));
  if (where.launch >= 0) add(fmt::format("launch {}", where.launch));
  if (where.step >= 0) add(fmt::format("step {}", where.step));
  if (where.row >= 0) add(fmt::format("row {}", where.row));
  if (where.keys >= 0) add(fmt::format("(n {})", where.keys));
  return text;
}

CheckResult& CheckLog::of(std::string_view check) {
  const auto found =
      std::find_if(results_.begin(), results_.end(),
                   [&](const CheckResult& r) { return r.name == check; });
  if (found != results_.end()) return *found;
  results_.push_back({std::string(check), Outcome::kUntested, "", 0, 0});
  return results_.back();
}

void CheckLog::record(std::string_view check, const Where& where,
                      const std::string& fault) {
  CheckResult& result = of(check);
  ++result.run;
  if (!fault.empty()) {
    if (result.failed++ == 0) {
      const std::string place = to_string(where);
      result.reason = place.empty() ? fault : place + ": " + fault;
    }
    result.outcome = Outcome::kFailed;
  } else if (result.outcome == Outcome::kUntested) {
    result.outcome = Outcome::kPassed;
    result.reason.clear();
  }
}

void CheckLog::untested(std::string_view check, const std::string& reason) {
  CheckResult& result = of(check);
  if (result.outcome == Outcome::kUntested) result.reason = reason;
}

bool CheckLog::failed() const {
  return std::any_of(results_.begin(), results_.end(), [](const auto& r) {
    return r.outcome == Outcome::kFailed;
  });
}

}  // namespace exact_topk::harness
