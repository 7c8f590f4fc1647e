// SPDX-License-Identifier: Apache-2.0
//
// Collects the verdicts of one case on one rank, check by check.
//
// A check is made once a row and launch (or once a launch) and says what is
// wrong in one sentence, or nothing. The log counts, and keeps the sentence of
// the first fault of each check. Checks are listed in the order in which they
// were first made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/result.h"

namespace exact_topk::harness {

// Where a check was made; -1: not about one of these.
struct Where {
  int launch = -1;
  int step = -1;
  int row = -1;
  int64_t keys = -1;          // n of the row
  std::string_view arm = {};  // empty: the only one
};
std::string to_string(const Where& where);  // "launch 0 step 1 row 3 (n 8448)"

class CheckLog {
 public:
  // One check made; `fault` is empty where it held.
  void record(std::string_view check, const Where& where,
              const std::string& fault);
  // The check could not be made at all.
  void untested(std::string_view check, const std::string& reason);

  bool failed() const;
  const std::vector<CheckResult>& results() const { return results_; }

 private:
  CheckResult& of(std::string_view check);

  std::vector<CheckResult> results_;
};

}  // namespace exact_topk::harness
