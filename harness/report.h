// SPDX-License-Identifier: Apache-2.0
//
// A run as reports tell it: what ran, on what, and what came of every case, in
// listed order. The formats (text, JSON, JUnit) only print this; the verdict
// and the counts are worked out here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/environment.h"
#include "harness/result.h"

namespace exact_topk::harness {

// What was judged.
struct CandidateInfo {
  std::string name;  // as it calls itself, or as it was asked for where it was
                     // never opened
  std::string version;  // its own
  int abi = 0;  // version of kernels/candidate.h, 0 where it was never opened
  std::string arm;     // as asked for: "head", "both", "base,base+slices"; else
                       // the one that ran
  std::string device;  // "cpu", "nvidia", "amd" or what it says
};

struct Report {
  CandidateInfo candidate;
  Environment environment;
  std::vector<int> tp;            // every T of the run, ascending
  std::vector<CaseResult> cases;  // in listed order
  bool allow_mistrusted = false;  // MISTRUSTED does not fail the run
  std::string error;   // the one sentence of a run that ended with status 2;
                       // empty otherwise
  double seconds = 0;  // wall time of the run
};

// Sums over the cases of a report.
struct Counts {
  int64_t cases = 0;            // cases, run or not
  int64_t checks = 0;           // checks made, each as often as it was
  int64_t failed = 0;           // cases FAILED
  int64_t skipped = 0;          // cases SKIPPED
  int64_t untested = 0;         // checks UNTESTED, and cases that are
  int64_t mistrusted = 0;       // cases MISTRUSTED
  double max_score_error = 0;   // largest of the cases; NaN where one is
  double max_bound_ratio = 0;   // likewise
  int64_t missed = 0;           // summed, like the rest
  int64_t order_errors = 0;     // ...
  int64_t controls_run = 0;     // ...
  int64_t controls_caught = 0;  // ...
  ArmPaths paths;               // that any case took
  ArmScratch scratch;           // the most that any case needs
};

Counts count(const Report& report);
// 0 passed, 1 failed, 2 where there is an error.
int status(const Report& report);
// "passed", "failed", "error".
std::string_view verdict(const Report& report);

}  // namespace exact_topk::harness
