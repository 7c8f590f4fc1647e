// SPDX-License-Identifier: Apache-2.0
//
// What came of a check and of a case. The judging (run_case.h) returns, on
// every rank of a group, a CaseResult of what that rank judged; the engine
// merges those of a group into one, gathers the cases of all groups in listed
// order, and the reports print them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/levels.h"
#include "harness/paths.h"
#include "harness/timing.h"

namespace exact_topk::harness {

enum class Outcome {
  kPassed,      // judged, and nothing was wrong
  kSkipped,     // not run, for the reason given
  kUntested,    // not judged: the candidate does not publish what the check
                // needs, or the ranks are emulated
  kMistrusted,  // everything matched, but the case proves little (SPEC section
                // 6)
  kFailed,      // something was wrong
};

// "PASSED", "FAILED", "SKIPPED", "UNTESTED", "MISTRUSTED".
std::string_view to_string(Outcome outcome);

struct CheckResult {
  std::string
      name;  // "scores", "set", "order", "key stage", "control swapped" ...
  Outcome outcome =
      Outcome::kPassed;  // of this check over everything it judged in the case
  std::string reason;    // one sentence on the first fault, or why it is
                         // untested; empty when passed
  int64_t run =
      0;  // how often the check was made (mostly once a row and launch)
  int64_t failed = 0;  // how many of those failed

  bool operator==(const CheckResult&) const = default;
};

struct CaseResult {
  std::string name;  // cases::name() of the case
  Outcome verdict =
      Outcome::kPassed;  // the worst of its checks, or SKIPPED or MISTRUSTED
  std::string reason;    // one sentence: the first fault, or why skipped or
                         // mistrusted; empty when passed
  std::string repro;     // the command line that reproduces it
  std::vector<CheckResult>
      checks;  // in the order in which they were first made
  double max_score_error =
      0;  // largest score error over its row's largest |reference|
  double max_bound_ratio =
      0;               // largest score error over its own f32 rounding bound
  int64_t missed = 0;  // keys of the exact top k that lists lack, summed over
                       // rows and launches
  int64_t order_errors = 0;  // entries that differ from the base order at their
                             // index, likewise summed
  int64_t controls_run = 0;  // negative controls made
  int64_t controls_caught = 0;  // of those, caught by the check meant for them
  double seconds = 0;           // wall time of the case on its group
  Levels levels;                // that held in every list judged
  ArmPaths paths;               // that each arm took
  std::vector<std::string> diagnosis;  // of the first rows that failed, a line
                                       // a fact
  std::vector<PartTime> times;         // of the group's first rank, where timed

  bool operator==(const CaseResult&) const = default;
};

// One result from those of the ranks that judged a case together, in rank
// order: counts add up, maxima are taken (a NaN stays one), verdict and check
// outcomes are the worst (a check that any rank passed is not untested),
// reasons those of the first rank with that outcome. `parts` is not empty; name
// and repro are the first part's.
CaseResult merge(std::span<const CaseResult> parts);

// All fields, non-finite numbers as strings, for the way between ranks. The
// report has a format of its own (report_json.h).
void to_json(nlohmann::json& json, const CaseResult& result);
void from_json(const nlohmann::json& json, CaseResult& result);

}  // namespace exact_topk::harness
