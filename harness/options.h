// SPDX-License-Identifier: Apache-2.0
//
// The command line of check_topk (SPEC section 7) and time_topk (section 9).
// Every bad option or value is one sentence that names both; case options are
// those of cases/options.h, so that a command line and a suite line are read
// alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases/options.h"
#include "harness/settings.h"

namespace exact_topk::harness {

struct Options {
  Settings settings;            // everything that is not about which cases
  cases::CaseOptions selected;  // case options as given
  std::string suite;            // --suite FILE, empty: the case options
  std::string filter;           // --filter GLOB, empty: every case
  std::string start_at;         // --start-at CASE, empty: the first
  bool list = false;            // --list: names alone
  bool dry_run = false;         // --dry-run: names, repro lines and bytes
};

struct Parsed {
  Options options;    // as far as they were understood: a report may still be
                      // wanted where there is an error
  std::string error;  // the one sentence on what is wrong; empty: nothing
  std::string
      text;  // to print instead of running (--help, --version); empty: run
};

// The programs that share this command line. time_topk adds what is about
// timing.
enum class Program { kCheck, kTime };

Parsed parse_options(const std::vector<std::string>& arguments,
                     Program program = Program::kCheck);

}  // namespace exact_topk::harness
